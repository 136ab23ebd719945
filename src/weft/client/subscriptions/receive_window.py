"""How much one reader was given and has not yet taken, and when the socket must rest for it.

Frames arrive on the loop's thread and may be taken on another. Over its limit an intake asks the
flow to stop reading, so that the gateway's own bound and policy apply. What was read already, or
must be read because an answer is awaited behind it, is admitted up to a ceiling; beyond it an
intake admits nothing, and its owner announces the loss.
"""

import threading
from collections.abc import Callable
from typing import Protocol

from weft.client.status import Gap

# What Python adds to the bytes of an item in a queue, rounded up.
ITEM_COST_BYTES = 128

# A full intake asks for more once so much was taken, or half of what it holds if that is less: a
# reader that is slow but steady is seen to be so.
EASE_BYTES = 256 << 10
# A member of a queue group is full with this much: what it has not begun, others can do.
GROUP_REST_BYTES = 256 << 10

_ITEM_COST = ITEM_COST_BYTES


class Flow(Protocol):
    """Whoever reads the socket."""

    def hold(self, intake: "Intake") -> None:
        """An intake is full; called on the loop's thread."""

    def ease(self, intake: "Intake") -> None:
        """An intake has room again; called on any thread."""

    def overshoot_bytes(self) -> int:
        """How much may still come after hold(), because it was read already."""


class Intake:
    """The bound of one reader.

    Only the loop's thread writes what arrived and only takers, under a lock, what was taken: so
    neither has to wait for the other.
    """

    def __init__(self, limit_bytes: int, flow: Flow, rest_bytes: int = 0) -> None:
        """Be full over the limit, or over `rest_bytes` if that is given and less."""
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
        """How much may be held."""
        return self._limit

    @property
    def held_bytes(self) -> int:
        """What arrived and was not taken."""
        return self._arrived - self._taken

    def admit_all(self, size: int, count: int) -> bool:
        """Count several items of so many bytes together in; False if there is no room for all."""
        cost = size + count * _ITEM_COST
        if self._arrived - self._taken + cost > self._high:
            return False
        self._arrived += cost
        return True

    def admit(self, size: int) -> bool:
        """Count an item of so many bytes in; False if it cannot stay."""
        cost = size + _ITEM_COST
        held = self._arrived - self._taken + cost
        if held <= self._high:
            self._arrived += cost
            return True
        # One that is alone may stay, however large: nothing else would ever move.
        if held > cost and held > 2 * self._limit + self._flow.overshoot_bytes():
            return False
        self._arrived += cost
        if not self.is_full:
            self.is_full = True
            self._flow.hold(self)
            # A taker that emptied the queue just before has not seen that it was full.
            self._ease_if_low()
        return True

    def release(self, size: int, count: int = 1) -> None:
        """Count items of so many bytes together out; called by whoever took them."""
        with self._lock:
            self._taken += size + count * _ITEM_COST
        if self.is_full:
            self._ease_if_low()
        # Looked at once: the loop's thread may change it meanwhile.
        waiting = self._when_empty
        if waiting and self.held_bytes == 0:
            for call in waiting:
                call()

    def gap(self, refused: int) -> Gap:
        """The news that so many were refused, counted in as an item without a size."""
        self._arrived += _ITEM_COST
        return Gap("full", refused)

    def when_empty(self, call: Callable[[], object]) -> None:
        """Call this, on any thread, whenever everything was taken, until forget() is called."""
        self._when_empty += (call,)
        if self.held_bytes == 0:
            call()

    def forget(self, call: Callable[[], object]) -> None:
        """Make this call no more."""
        self._when_empty = tuple(each for each in self._when_empty if each is not call)

    def leave(self) -> None:
        """Nobody takes anything more: whoever waits for it is let go."""
        for call in self._when_empty:
            call()

    def _ease_if_low(self) -> None:
        if self.held_bytes <= self._low:
            with self._lock:
                was_full = self.is_full
                self.is_full = False
            if was_full:
                self._flow.ease(self)
