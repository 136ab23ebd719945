"""The command `weft bench`."""
