"""System requests: `_WEFT.ask.*`."""
