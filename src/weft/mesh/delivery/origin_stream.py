"""What comes from one gateway: whether all of it did, and in order.

Its frames have dense numbers. What is too early is held back while the hole before it is asked for;
what is too late was there before.
"""

from heapq import heappop, heappush
from typing import NamedTuple

from weft.mesh.delivery.remote_gateway import EPOCH_BITS

# All that may be held back of one gateway before the hole is given up.
HELD_BYTES = 4 << 20
# What holding a piece costs beside its bytes, about.
HELD_COST_BYTES = 256
# Of what never came, so many holes can be told of.
MISSED_MAX = 64


class Held(NamedTuple):
    """Frames that came too early."""

    frame_count: int
    flags: int
    group: bytes
    frames: bytes
    mark: int = 0


class Incoming:
    """The stream from one gateway; `expected` is the number of the next frame."""

    def __init__(self, origin: int, number: int) -> None:
        self.origin = origin
        self.expected = number >> EPOCH_BITS << EPOCH_BITS
        # There are frames up to here: so it was said, or so others came.
        self.top = self.expected
        self.is_last = False
        # Whether it waits to hear that everything came.
        self.is_ack_due = False
        # Since when something is missing, and when it was asked for; 0: it is not.
        self.hole_ns = 0
        self.asked_ns = 0
        # What never came, as first and last numbers, and when the last of it was given up.
        self.missed: list[tuple[int, int]] = []
        self.missed_ns = 0
        self.held_bytes = 0
        self._held: dict[int, Held] = {}
        self._order: list[int] = []

    @property
    def is_complete(self) -> bool:
        """Say if nothing is known to be missing."""
        return self.expected >= self.top and not self._held

    @property
    def hole_end(self) -> int:
        """Up to where everything is missing."""
        return self._order[0] if self._order else max(self.top, self.expected)

    def hold(self, number: int, held: Held, now_ns: int) -> bool:
        """Hold frames back; False if there is no room, or they are held already."""
        before = self._held.get(number)
        if before is not None and before.frame_count >= held.frame_count:
            return False
        cost = len(held.frames) + HELD_COST_BYTES
        if self.held_bytes + cost > HELD_BYTES:
            return False
        if before is None:
            heappush(self._order, number)
        else:
            self.held_bytes -= len(before.frames) + HELD_COST_BYTES
        self._held[number] = held
        self.held_bytes += cost
        self.top = max(self.top, number + held.frame_count)
        self.missing(now_ns)
        return True

    def missing(self, now_ns: int) -> None:
        """Something is not there that should be."""
        if self.hole_ns == 0:
            self.hole_ns = now_ns
            self.asked_ns = 0

    def miss(self, until: int, now_ns: int) -> None:
        """What is missing before a number will not come: its gateway is to be told."""
        if len(self.missed) >= MISSED_MAX:
            del self.missed[0]
        self.missed.append((self.expected, until - 1))
        self.missed_ns = now_ns
        self.is_ack_due = True
        self.expected = until
        self.moved(now_ns)

    def due(self) -> tuple[int, Held] | None:
        """What was held back and need not be any longer, with its number."""
        if self._order and self._order[0] <= self.expected:
            number = heappop(self._order)
            held = self._held.pop(number)
            self.held_bytes -= len(held.frames) + HELD_COST_BYTES
            return number, held
        return None

    def put_back(self, number: int, held: Held) -> None:
        """What was due cannot be dealt with yet."""
        heappush(self._order, number)
        self._held[number] = held
        self.held_bytes += len(held.frames) + HELD_COST_BYTES

    def moved(self, now_ns: int) -> None:
        """More came: if there is another hole, its time begins now."""
        self.hole_ns = 0
        self.asked_ns = 0
        if not self.is_complete:
            self.missing(now_ns)

    def begin_anew(self, number: int) -> None:
        """Another epoch begins: nothing of this one will come any more."""
        self.expected = number >> EPOCH_BITS << EPOCH_BITS
        self.top = self.expected
        self.is_last = self.is_ack_due = False
        self.hole_ns = self.asked_ns = self.held_bytes = 0
        self.missed.clear()
        self._held.clear()
        self._order.clear()
