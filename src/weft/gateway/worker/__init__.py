"""The worker process of one service, and its supervision."""
