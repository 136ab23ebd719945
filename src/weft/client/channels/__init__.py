"""Protected channels."""
