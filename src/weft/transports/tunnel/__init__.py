"""Tunnel transport: streams to browsers that survive reconnects."""
