"""HTTP transport: requests, responses and server-sent events."""
