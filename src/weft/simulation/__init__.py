"""Deterministic simulation: the real mesh on a virtual clock and network, reproducible by seed."""
