"""Queue of a blocking subscription without a handler, for iteration on any thread.

The loop's thread puts, any number of threads take. An item is a function and its argument, so that
messages and gaps, which only the subscription can distinguish, share one queue.
"""

import queue
import time
from collections.abc import Callable
from typing import Any

from weft.client.sync.interruptible import PIECE_S, piece_of

Item = tuple[Callable[[Any], object], Any]


class Mailbox:
    """Thread-safe queue; bounded by the receive window of its subscription."""

    def __init__(self) -> None:
        # Implemented in C and fast, but unbounded by itself.
        self._items: queue.SimpleQueue[Item | None] = queue.SimpleQueue()

    def put(self, call: Callable[[Any], object], argument: object) -> None:
        """Add a call."""
        self._items.put((call, argument))

    def end(self) -> None:
        """End the queue after its current items."""
        self._items.put(None)

    def take(self, timeout: float | None) -> Item | None:
        """Return the next call, or None at the end, for every taker.

        Raises:
            queue.Empty: No item within the timeout.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left_s = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            try:
                item = self._items.get(timeout=piece_of(left_s))
            except queue.Empty:
                if left_s is None or left_s > PIECE_S:
                    continue
                raise
            if item is None:
                self._items.put(None)
            return item
