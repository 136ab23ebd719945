"""Demonstration of Weft on one machine: `make demo`."""
