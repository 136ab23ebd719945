"""The hot path: pure functions and values, compiled, with no I/O, clock, randomness or logging."""
