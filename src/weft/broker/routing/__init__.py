"""Subscriptions, and the cached routes of subjects."""
