"""One hop between two gateways, and between two servers of other brokers."""
