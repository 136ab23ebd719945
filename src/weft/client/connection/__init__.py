"""The connection to a gateway: session, transport, reconnects."""
