"""Subscriptions: dispatch, flow control, replay."""
