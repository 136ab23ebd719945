"""Segments: files of blocks that are being written."""
