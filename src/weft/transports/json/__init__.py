"""JSON protocol: messages as JSON datagrams."""
