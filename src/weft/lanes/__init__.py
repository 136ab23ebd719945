"""Lanes, the gateway's part: choose routes, negotiate lanes, track their state. Does no I/O."""
