"""Queues to peers: outboxes, backlogs, bounds and backpressure."""
