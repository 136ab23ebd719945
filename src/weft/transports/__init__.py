"""Transports: the protocols by which peers connect to a gateway."""
