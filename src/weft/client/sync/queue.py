"""What an iterated subscription of the blocking face has received and not yet taken.

The loop's thread puts, any number of others take. An item is a call to make and what to make it
with: so a message and a gap, which only the subscription can tell apart, wait in one line.
"""

import queue
import time
from collections.abc import Callable
from typing import Any

from weft.client.sync.interruptible import PIECE_S, piece_of

Item = tuple[Callable[[Any], object], Any]


class Mailbox:
    """A queue between threads; an intake bounds what is put into it."""

    def __init__(self) -> None:
        # In C, and fast. It has no bound of its own.
        self._items: queue.SimpleQueue[Item | None] = queue.SimpleQueue()

    def put(self, call: Callable[[Any], object], argument: object) -> None:
        """Put a call."""
        self._items.put((call, argument))

    def end(self) -> None:
        """Nothing more comes after what is here."""
        self._items.put(None)

    def take(self, timeout: float | None) -> Item | None:
        """The next call, or None at the end, for every taker.

        Raises:
            queue.Empty: nothing came in time.
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
