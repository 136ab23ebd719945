"""The command `weft`: one file per command, built on the public API."""
