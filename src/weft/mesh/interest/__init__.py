"""Which gateways have subscriptions to what."""
