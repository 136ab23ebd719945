"""Messages: field types, encoding, and conversion from and to Python and JSON."""
