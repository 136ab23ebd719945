"""Bytes of one event-loop turn, and the spans of them that each outbox sends.

All reads of a turn lie in one buffer, one after the other. A span is a range of it that one outbox
has to send, under the policy of the subscription. Once every outbox has sent its spans or copied
them to its backlog, nothing refers to the buffer and the next turn starts at 0.
"""

from array import array
from typing import Any

from weft.broker.delivery.chunk import FrameChunk
from weft.wire.byteops import Bytes, cut, put_bytes, room_for

ARENA_BYTES = 4 << 20
# Spans are C ints; the half for gathering follows the half for reads.
ARENA_MAX_BYTES = 1 << 30
_FIRST_SPANS = 1024


class Arena:
    """Buffer of one service. `data[:size]` takes reads; the second half is for gathering."""

    def __init__(self, size_bytes: int = ARENA_BYTES) -> None:
        if not 0 < size_bytes <= ARENA_MAX_BYTES:
            raise ValueError(f"an arena of {size_bytes} bytes is not in 1 … {ARENA_MAX_BYTES}")
        self.size = size_bytes
        self.fill = 0
        self.data = room_for(2 * size_bytes)
        # Outboxes with frames queued in this turn, each once.
        self.waiting: list[Any] = []
        # Number of outboxes with spans: the buffer is not reused while there are any.
        self.in_use = 0
        self.span_count = 0
        self._span_room = _FIRST_SPANS
        self.starts = _ints(_FIRST_SPANS)
        self.lengths = _ints(_FIRST_SPANS)
        self.nexts = _ints(_FIRST_SPANS)
        self.policies = _ints(_FIRST_SPANS)
        self._cuts: dict[int, FrameChunk] = {}

    def room(self) -> int:
        """Free bytes until the next reset()."""
        return self.size - self.fill

    def put(self, source: Bytes) -> int:
        """Copy bytes into the arena and return their offset, or -1 if they do not fit."""
        length = len(source)
        start = self.reserve(length)
        if start >= 0:
            put_bytes(self.data, start, source, 0, length)
        return start

    def reserve(self, length: int) -> int:
        """Reserve bytes for the caller to fill; return their offset, or -1 if they do not fit."""
        start = self.fill
        if not 0 <= length <= self.size - start:
            return -1
        self.fill = start + length
        return start

    def took(self, count: int) -> None:
        """Count N bytes that were read into the free space at `fill`."""
        if not 0 <= count <= self.size - self.fill:
            raise ValueError(f"{count} bytes are not in the {self.size - self.fill} that were free")
        self.fill += count

    def add_span(self, start: int, length: int, policy: int) -> int:
        """Create a span and return its number."""
        number = self.span_count
        if number == self._span_room:
            self._grow()
        self.starts[number] = start
        self.lengths[number] = length
        self.nexts[number] = -1
        self.policies[number] = policy
        self.span_count = number + 1
        return number

    def shared_cut(self, start: int, length: int) -> FrameChunk:
        """A range as a shared piece: the same range gives the same object within a turn."""
        # No range is longer than the arena, so the two numbers make a unique key.
        key = start * (self.size + 1) + length
        kept = self._cuts.get(key)
        if kept is None:
            kept = FrameChunk(cut(self.data, start, start + length))
            self._cuts[key] = kept
        return kept

    def reset(self) -> None:
        """Start the next turn, after every outbox in `waiting` sent or settled its spans.

        Raises:
            ValueError: an outbox still has spans; it would send other bytes than it was given.
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
