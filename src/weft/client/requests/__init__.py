"""Requests, replies, acknowledgements and runtime grants."""
