"""Outbound queues: arena, outboxes, backlogs, and the handling of slow consumers."""
