"""Middleman protocol: text messages over a WebSocket."""
