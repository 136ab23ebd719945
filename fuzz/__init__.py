"""Hostile bytes for the decoders: found by coverage, then judged by both cores."""
