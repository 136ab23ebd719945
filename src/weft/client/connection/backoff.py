"""How long to wait before the next attempt to connect: doubling, capped, and spread by chance."""


class Backoff:
    """Delays that double from a first one up to a cap.

    What is waited is any part of the delay, so that a thousand clients that lost one gateway do not
    come back in step. Chance comes in as an argument.
    """

    def __init__(self, first_s: float, cap_s: float) -> None:
        self._first_s = first_s
        self._cap_s = cap_s
        self._next_s = first_s

    def next_delay_s(self, chance: float) -> float:
        """The delay before the next attempt; `chance` is drawn evenly from 0 … 1."""
        delay_s = self._next_s
        self._next_s = min(delay_s * 2, self._cap_s)
        return delay_s * chance

    def reset(self) -> None:
        """Begin again with the first delay."""
        self._next_s = self._first_s
