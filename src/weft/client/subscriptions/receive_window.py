"""Receive window of one subscription: limits received bytes that are not yet processed.

Frames are added on the loop's thread and may be taken on another. A window above its limit asks the
flow control to pause reading, so that the gateway's own limits and policy apply. Frames that were
already read, or must be read because a reply is pending behind them, are admitted up to a ceiling.
Above the ceiling the window refuses frames, and its owner reports the loss.
"""

import threading
from collections.abc import Callable
from typing import Protocol

from weft.client.status import Gap

# Overhead of a queued item in Python, rounded up.
ITEM_COST_BYTES = 128

# A full window resumes reading after this many bytes were released, or half of its content if that
# is less: a slow but steady subscriber shows progress to the gateway.
EASE_BYTES = 256 << 10
# The window of a queue group member is full at this size: other members can take the messages.
GROUP_REST_BYTES = 256 << 10

_ITEM_COST = ITEM_COST_BYTES


class SocketFlowControl(Protocol):
    """Interface of the flow control that pauses and resumes the socket."""

    def hold(self, intake: "ReceiveWindow") -> None:
        """Pause reading: a window is full. Called on the loop's thread."""

    def ease(self, intake: "ReceiveWindow") -> None:
        """Resume reading: a window has space again. Called on any thread."""

    def overshoot_bytes(self) -> int:
        """Return how many bytes may still arrive after hold(), because they were already read."""


class ReceiveWindow:
    """Receive window of one subscription.

    Only the loop's thread updates the bytes that arrived, and only takers, under a lock, the bytes
    that were taken: neither blocks the other.
    """

    def __init__(self, limit_bytes: int, flow: SocketFlowControl, rest_bytes: int = 0) -> None:
        """Create a window that is full above `limit_bytes`, or above a smaller `rest_bytes`."""
        self.is_full = False
        self._limit = limit_bytes
        self._high = min(rest_bytes or limit_bytes, limit_bytes)
        self._low = self._high - min(self._high // 2, EASE_BYTES)
        self._flow = flow
        self._arrived = 0
        self._taken = 0
        self._lock = threading.Lock()
        self._when_empty: tuple[Callable[[], object], ...] = ()

    @property
    def limit_bytes(self) -> int:
        """The limit on held bytes."""
        return self._limit

    @property
    def held_bytes(self) -> int:
        """Bytes that arrived and were not released."""
        return self._arrived - self._taken

    def admit_all(self, size: int, count: int) -> bool:
        """Add `count` items of `size` bytes in total; return False if they do not all fit."""
        cost = size + count * _ITEM_COST
        if self._arrived - self._taken + cost > self._high:
            return False
        self._arrived += cost
        return True

    def admit(self, size: int) -> bool:
        """Add one item of `size` bytes; return False if it must be dropped."""
        cost = size + _ITEM_COST
        held = self._arrived - self._taken + cost
        if held <= self._high:
            self._arrived += cost
            return True
        # A single item is always admitted, however large: otherwise the stream would stall.
        if held > cost and held > 2 * self._limit + self._flow.overshoot_bytes():
            return False
        self._arrived += cost
        if not self.is_full:
            self.is_full = True
            self._flow.hold(self)
            # A taker that emptied the queue just before did not see that the window was full.
            self._ease_if_low()
        return True

    def release(self, size: int, count: int = 1) -> None:
        """Remove `count` items of `size` bytes in total; called by their taker."""
        with self._lock:
            self._taken += size + count * _ITEM_COST
        if self.is_full:
            self._ease_if_low()
        # Read once: the loop's thread may replace it meanwhile.
        waiting = self._when_empty
        if waiting and self.held_bytes == 0:
            for call in waiting:
                call()

    def gap(self, refused: int) -> Gap:
        """Return a gap for refused items, added to the window as an item without a size."""
        self._arrived += _ITEM_COST
        return Gap("full", refused)

    def when_empty(self, call: Callable[[], object]) -> None:
        """Call `call`, on any thread, whenever the window becomes empty, until forget()."""
        self._when_empty += (call,)
        if self.held_bytes == 0:
            call()

    def forget(self, call: Callable[[], object]) -> None:
        """Stop calling `call`."""
        self._when_empty = tuple(each for each in self._when_empty if each is not call)

    def leave(self) -> None:
        """Release all waiters: the subscription is closed."""
        for call in self._when_empty:
            call()

    def _ease_if_low(self) -> None:
        if self.held_bytes <= self._low:
            with self._lock:
                was_full = self.is_full
                self.is_full = False
            if was_full:
                self._flow.ease(self)
