"""Subscriptions, and the routes of subjects."""
