"""Weft's journal and the durable logs of other brokers side by side, on the same disk."""
