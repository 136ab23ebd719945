"""Tunnels: streams to browsers that survive reconnects."""
