"""Weft's gateway and other brokers side by side: the same loads, in one run, in turns."""
