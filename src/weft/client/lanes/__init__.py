"""Direct connections between clients."""
