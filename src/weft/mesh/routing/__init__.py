"""Paths through the mesh."""
