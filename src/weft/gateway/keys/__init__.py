"""Key files."""
