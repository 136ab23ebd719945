"""Weft at work on one machine: `make demo`."""
