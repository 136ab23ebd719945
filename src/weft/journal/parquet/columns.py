"""Columns of frames in Arrow's layout: offsets and bytes, or contiguous numbers.

Bodies are not decoded. Works on a block at a time without an object per message, because a journal
holds millions of them.
"""

from weft.wire.buffer import Writer
from weft.wire.byteops import cut, i64_at, put_bytes, put_i32, put_i64, same_bytes, u32_at
from weft.wire.frames import HEADER_BYTES
from weft.wire.subjects import matches

_HEADER = HEADER_BYTES


class Texts:
    """Column of strings or bytes."""

    def __init__(self) -> None:
        self.offsets = Writer()
        self.data = Writer()
        self._end()

    def add(self, source: bytes, start: int, length: int) -> None:
        """Append a range of bytes."""
        at = self.data.reserve(length)
        put_bytes(self.data.data, at, source, start, length)
        self._end()

    def _end(self) -> None:
        at = self.offsets.reserve(4)
        put_i32(self.offsets.data, at, self.data.size)


class IntegerColumn:
    """Column of 64-bit integers."""

    def __init__(self) -> None:
        self.data = Writer()

    def add(self, value: int) -> None:
        """Append a number."""
        at = self.data.reserve(8)
        put_i64(self.data.data, at, value)


class Columns:
    """Columns of the messages that match one of the patterns."""

    def __init__(self, patterns: tuple[bytes, ...] = (b">",)) -> None:
        self.rows = 0
        self.subject = Texts()
        self.reply = Texts()
        self.payload = Texts()
        self.flags = IntegerColumn()
        self.origin = IntegerColumn()
        self.publisher = IntegerColumn()
        self.sequence = IntegerColumn()
        self.time_ns = IntegerColumn()
        self.position = IntegerColumn()
        self._patterns = patterns
        self._takes_all = b">" in patterns
        # Most messages have the subject of the previous one.
        self._subject = b""
        self._is_wanted = False

    @property
    def size(self) -> int:
        """Approximate size of the largest column, in bytes."""
        return self.payload.data.size

    def add(self, frames: bytes, first: int, count: int) -> None:
        """Append consecutive whole frames; `first` is the position of the first.

        Raises:
            ValueError: not `count` whole frames.
        """
        at = 0
        end = len(frames)
        for number in range(count):
            if end - at < _HEADER:
                raise ValueError(f"{count} frames do not fit in {end} bytes")
            length = u32_at(frames, at)
            names = _HEADER + frames[at + 6] + frames[at + 7]
            if length < names or length > end - at:
                raise ValueError(f"a frame of {length} bytes at {at} is not in {end}")
            if self._wants(frames, at + _HEADER, frames[at + 6]):
                self._add_row(frames, at, length, first + number)
            at += length
        if at != end:
            raise ValueError(f"{end - at} bytes follow {count} frames")

    def _add_row(self, frames: bytes, at: int, length: int, position: int) -> None:
        subject = frames[at + 6]
        reply = frames[at + 7]
        names = _HEADER + subject + reply
        self.subject.add(frames, at + _HEADER, subject)
        self.reply.add(frames, at + _HEADER + subject, reply)
        self.payload.add(frames, at + names, length - names)
        self.flags.add(frames[at + 5])
        self.origin.add(u32_at(frames, at + 8))
        self.publisher.add(u32_at(frames, at + 12))
        self.sequence.add(i64_at(frames, at + 16))
        self.time_ns.add(i64_at(frames, at + 24))
        self.position.add(position)
        self.rows += 1

    def _wants(self, frames: bytes, start: int, length: int) -> bool:
        if self._takes_all:
            return True
        if length != len(self._subject) or not same_bytes(frames, start, self._subject, 0, length):
            self._subject = cut(frames, start, start + length)
            self._is_wanted = False
            for pattern in self._patterns:
                self._is_wanted = self._is_wanted or matches(pattern, self._subject)
        return self._is_wanted
