"""The middleman protocol."""
