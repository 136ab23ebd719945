"""The journal of a running service."""
