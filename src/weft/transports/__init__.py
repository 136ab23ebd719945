"""The ways in: small adapters between sockets and the core."""
