"""HTTP: requests, answers and server-sent events."""
