"""Bayeux transport: CometD and Faye clients."""
