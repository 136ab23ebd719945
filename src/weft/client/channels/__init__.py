"""Channels: requests to the gateway, memberships, and their recovery after a reconnection."""
