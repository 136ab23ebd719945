"""Crashes gateways at random moments, and counts what their journals lost."""
