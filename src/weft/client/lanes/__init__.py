"""Lanes: direct connections between clients."""
