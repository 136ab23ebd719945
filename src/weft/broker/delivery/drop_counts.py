"""Dropped messages that are not yet reported, counted by origin and reason.

Bounded: over the limit of pairs, counts go to origin 0, which stands for any.
"""

from weft.broker.delivery.policy import GAPS_MAX, Reason
from weft.wire.buffer import Writer
from weft.wire.byteops import put_u32, u32_at
from weft.wire.frames import Kind, begin_frame, end_frame
from weft.wire.message.codec import put_fields
from weft.wire.message.types import Fields, FieldType

_MESSAGE = int(Kind.MESSAGE)
# The last entries are reserved for "any origin", one for each reason.
_ORIGINS_MAX = GAPS_MAX - len(Reason)


class Losses:
    """Counts dropped messages; take() turns the counts into GAP frames."""

    def __init__(self, totals: list[int], origins_max: int = _ORIGINS_MAX) -> None:
        self.total = 0
        self._origins_max = origins_max
        # Totals by reason of all outboxes that share the bounds.
        self._totals = totals
        self._counts: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def count(self, frames: bytes, reason: int) -> int:
        """Count the messages among whole frames that are being dropped, and return their number."""
        before = self.total
        data = frames
        at = 0
        end = len(frames)
        origin = 0
        count = 0
        while at < end:
            if data[at + 4] == _MESSAGE:
                # Frames of one origin come together: add them up first.
                if count > 0 and u32_at(data, at + 8) != origin:
                    self.add(origin, reason, count)
                    count = 0
                origin = u32_at(data, at + 8)
                count += 1
            at += u32_at(data, at)
        if count > 0:
            self.add(origin, reason, count)
        return self.total - before

    def add(self, origin: int, reason: int, count: int) -> None:
        """Count dropped messages of one origin."""
        key = (origin, reason)
        if key not in self._counts and len(self._counts) >= self._origins_max:
            key = (0, reason)
        self._counts[key] = self._counts.get(key, 0) + count
        self.total += count
        self._totals[reason] += count

    def take(self) -> bytes:
        """Return GAP frames for everything counted since the last call."""
        writer = Writer()
        for (origin, reason), count in self._counts.items():
            put_gap(writer, origin, Reason(reason).name.lower(), count)
        self._counts.clear()
        return writer.take()


def put_gap(writer: Writer, origin: int, reason: str, count: int) -> None:
    """Append the GAP frame that reports N lost messages of an origin, and the reason."""
    fields = Fields(False)
    fields.add("reason", FieldType.STRING, reason)
    fields.add("count", FieldType.UINT64, count)
    start = begin_frame(writer, Kind.GAP, 0, b"", b"")
    put_u32(writer.data, start + 8, origin)
    put_fields(writer, fields)
    end_frame(writer, start)
