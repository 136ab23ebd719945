"""Simulated races for channel names."""
