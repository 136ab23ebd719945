"""Staged messages: rows of sinks that are published once they are committed."""
