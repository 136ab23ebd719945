"""Exponential back-off with full jitter for reconnect attempts."""


class Backoff:
    """Delays that double from a first value up to a cap.

    The actual delay is a random fraction, so that a thousand clients that lost the same gateway do
    not reconnect in step. The random number is an argument.
    """

    def __init__(self, first_s: float, cap_s: float) -> None:
        self._first_s = first_s
        self._cap_s = cap_s
        self._next_s = first_s

    def next_delay_s(self, chance: float) -> float:
        """Return the delay before the next attempt; `chance` is uniform in 0 … 1."""
        delay_s = self._next_s
        self._next_s = min(delay_s * 2, self._cap_s)
        return delay_s * chance

    def reset(self) -> None:
        """Start again with the first delay."""
        self._next_s = self._first_s
