"""Checks of prose and names against STYLE.md."""
