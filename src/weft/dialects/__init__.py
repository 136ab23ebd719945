"""What peers say that do not speak frames, and what they are told: pure translation."""
