"""Messages: their types, bytes, and forms in Python and JSON."""
