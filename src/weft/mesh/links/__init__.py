"""Connections between gateways: dialing, handshakes, heartbeats."""
