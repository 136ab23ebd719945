"""The mesh of a running service."""
