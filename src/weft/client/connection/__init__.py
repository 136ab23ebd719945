"""Connections: transport, session, engine, and the reconnect loop."""
