"""Sans-I/O core of a gateway: compiled state machines without clock, randomness or logging."""
