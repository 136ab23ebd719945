"""Interest sets: the patterns that each gateway subscribes to."""
