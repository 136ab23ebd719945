"""Tracing the path of a subject through the mesh."""
