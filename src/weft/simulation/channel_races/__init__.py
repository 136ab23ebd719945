"""Races for channels, simulated."""
