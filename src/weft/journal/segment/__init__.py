"""Segments that are written as blocks: writer, recovery, verification."""
