"""Ownership of channel names: votes and leases."""
