"""Kills drivers and gateways under a streaming query, and counts its rows."""
