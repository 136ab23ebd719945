"""Readers of journals, by position or time."""
