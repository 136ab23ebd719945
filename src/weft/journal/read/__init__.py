"""Reading journals, by position or time."""
