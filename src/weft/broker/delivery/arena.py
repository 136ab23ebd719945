"""The bytes of one loop turn, and the spans that say which of them go to whom.

Everything read in a turn lies in one buffer, one read after the other. A span is a stretch of it
that one outbox has yet to send, with the policy it was subscribed under. When every outbox has sent
its spans or kept what they hold, nothing points into the buffer and the next turn starts at 0.
"""

from array import array
from typing import Any

from weft.broker.delivery.chunk import Piece
from weft.wire.byteops import Bytes, cut, put_bytes, room_for

ARENA_BYTES = 4 << 20
# Spans are C ints, and what is gathered lies beyond what is read.
ARENA_MAX_BYTES = 1 << 30
_FIRST_SPANS = 1024


class Arena:
    """One per service. `data[:size]` takes what is read; the second half is for gathering."""

    def __init__(self, size_bytes: int = ARENA_BYTES) -> None:
        if not 0 < size_bytes <= ARENA_MAX_BYTES:
            raise ValueError(f"an arena of {size_bytes} bytes is not in 1 … {ARENA_MAX_BYTES}")
        self.size = size_bytes
        self.fill = 0
        self.data = room_for(2 * size_bytes)
        # Outboxes that got their first span since they last had none.
        self.waiting: list[Any] = []
        # How many outboxes have spans: while any has, the bytes may not be given up.
        self.in_use = 0
        self.span_count = 0
        self._span_room = _FIRST_SPANS
        self.starts = _ints(_FIRST_SPANS)
        self.lengths = _ints(_FIRST_SPANS)
        self.nexts = _ints(_FIRST_SPANS)
        self.policies = _ints(_FIRST_SPANS)
        self._cuts: dict[int, Piece] = {}

    def room(self) -> int:
        """How many bytes can still be taken in before the next reset()."""
        return self.size - self.fill

    def put(self, source: Bytes) -> int:
        """Copy bytes in and return where they begin, or -1 if the turn has no room for them."""
        length = len(source)
        start = self.reserve(length)
        if start >= 0:
            put_bytes(self.data, start, source, 0, length)
        return start

    def reserve(self, length: int) -> int:
        """Set bytes aside for the caller to fill; return where they begin, or -1 if none are."""
        start = self.fill
        if not 0 <= length <= self.size - start:
            return -1
        self.fill = start + length
        return start

    def took(self, count: int) -> None:
        """So many bytes were read into the room behind `fill`."""
        if not 0 <= count <= self.size - self.fill:
            raise ValueError(
                f"{count} bytes are not in the {self.size - self.fill} there was room for"
            )
        self.fill += count

    def add_span(self, start: int, length: int, policy: int) -> int:
        """Make a span and return its number."""
        number = self.span_count
        if number == self._span_room:
            self._grow()
        self.starts[number] = start
        self.lengths[number] = length
        self.nexts[number] = -1
        self.policies[number] = policy
        self.span_count = number + 1
        return number

    def shared_cut(self, start: int, length: int) -> Piece:
        """A stretch as a piece; all who ask for the same one in a turn get the same object."""
        # Nothing is longer than the arena, so the two numbers make one key.
        key = start * (self.size + 1) + length
        kept = self._cuts.get(key)
        if kept is None:
            kept = Piece(cut(self.data, start, start + length))
            self._cuts[key] = kept
        return kept

    def reset(self) -> None:
        """Start the next turn, when every outbox in `waiting` has sent or settled its spans.

        Raises:
            ValueError: one has not; it would send other bytes than it was given.
        """
        if self.in_use != 0:
            raise ValueError(f"{self.in_use} outboxes still hold spans of this turn")
        self.fill = 0
        self.span_count = 0
        self.waiting.clear()
        self._cuts.clear()

    def _grow(self) -> None:
        room = self._span_room
        self.starts = _longer(self.starts, room)
        self.lengths = _longer(self.lengths, room)
        self.nexts = _longer(self.nexts, room)
        self.policies = _longer(self.policies, room)
        self._span_room = 2 * room


def _ints(count: int) -> "array[int]":
    return array("i", bytes(4 * count))


def _longer(ints: "array[int]", room: int) -> "array[int]":
    longer = _ints(2 * room)
    for number in range(room):
        longer[number] = ints[number]
    return longer
