"""Receiving side of the stream from one gateway: order, duplicates and sequence gaps.

Its frames have consecutive numbers. Frames behind a gap are held while the missing ones are
requested; frames below the expected number are duplicates.
"""

from heapq import heappop, heappush
from typing import NamedTuple

from weft.mesh.delivery.remote_gateway import EPOCH_BITS

# Bound on the held bytes of one gateway; above it the gap is given up.
HELD_BYTES = 4 << 20
# Approximate overhead of a held piece.
HELD_COST_BYTES = 256
# Bound on the lost ranges that are remembered to be reported.
MISSED_MAX = 64


class HeldFrames(NamedTuple):
    """Frames held behind a sequence gap."""

    frame_count: int
    flags: int
    group: bytes
    frames: bytes
    mark: int = 0


class Incoming:
    """Stream from one gateway; `expected` is the number of the next frame."""

    def __init__(self, origin: int, number: int) -> None:
        self.origin = origin
        self.expected = number >> EPOCH_BITS << EPOCH_BITS
        # End of the numbers known to exist, from a mark or from frames behind a gap.
        self.top = self.expected
        self.is_last = False
        # Whether an acknowledgement is due to the sender.
        self.is_ack_due = False
        # Begin of the current gap, and time of the last request for it; 0: none.
        self.hole_ns = 0
        self.asked_ns = 0
        # Lost ranges as first and last numbers, and when the last was given up.
        self.missed: list[tuple[int, int]] = []
        self.missed_ns = 0
        self.held_bytes = 0
        self._held: dict[int, HeldFrames] = {}
        self._order: list[int] = []

    @property
    def is_complete(self) -> bool:
        """Whether no frame is known to be missing."""
        return self.expected >= self.top and not self._held

    @property
    def hole_end(self) -> int:
        """End of the first gap."""
        return self._order[0] if self._order else max(self.top, self.expected)

    def hold(self, number: int, held: HeldFrames, now_ns: int) -> bool:
        """Hold frames; False if over the limit or already held."""
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
        """Note that a frame is missing."""
        if self.hole_ns == 0:
            self.hole_ns = now_ns
            self.asked_ns = 0

    def miss(self, until: int, now_ns: int) -> None:
        """Give up the frames before a number, to be reported to the sender."""
        if len(self.missed) >= MISSED_MAX:
            del self.missed[0]
        self.missed.append((self.expected, until - 1))
        self.missed_ns = now_ns
        self.is_ack_due = True
        self.expected = until
        self.moved(now_ns)

    def due(self) -> tuple[int, HeldFrames] | None:
        """Remove and return held frames that are next in order, with their number."""
        if self._order and self._order[0] <= self.expected:
            number = heappop(self._order)
            held = self._held.pop(number)
            self.held_bytes -= len(held.frames) + HELD_COST_BYTES
            return number, held
        return None

    def put_back(self, number: int, held: HeldFrames) -> None:
        """Hold frames again that cannot be delivered yet."""
        heappush(self._order, number)
        self._held[number] = held
        self.held_bytes += len(held.frames) + HELD_COST_BYTES

    def moved(self, now_ns: int) -> None:
        """Note progress: the time of the next gap, if any, begins now."""
        self.hole_ns = 0
        self.asked_ns = 0
        if not self.is_complete:
            self.missing(now_ns)

    def begin_anew(self, number: int) -> None:
        """Start a new epoch, dropping the state of the old one."""
        self.expected = number >> EPOCH_BITS << EPOCH_BITS
        self.top = self.expected
        self.is_last = self.is_ack_due = False
        self.hole_ns = self.asked_ns = self.held_bytes = 0
        self.missed.clear()
        self._held.clear()
        self._order.clear()
