"""Frames, messages and subjects: the byte formats that clients and gateways share. Does no I/O."""
