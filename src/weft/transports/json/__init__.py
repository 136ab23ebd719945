"""Messages as JSON datagrams."""
