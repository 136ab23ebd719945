"""Membership: known gateways and their advertisements."""
