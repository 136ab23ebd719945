"""Growable buffer that frames and messages are appended to.

Doubles when full and keeps its capacity when emptied, so a steady writer allocates nothing.
"""

from weft.wire.byteops import Bytes, cut, put_bytes

_FIRST_ROOM = 256
# A writer with more capacity than this is not kept for reuse.
_KEPT_MAX = 64 << 10
_SPARES = 8


class Writer:
    """Append-only byte buffer: `data[:size]` is written, the rest is free capacity."""

    def __init__(self) -> None:
        self.data = bytearray(_FIRST_ROOM)
        self.size = 0

    def reserve(self, length: int) -> int:
        """Extend by N bytes and return their offset; the caller fills them in."""
        if length < 0:
            raise ValueError(f"cannot reserve {length} bytes")
        start = self.size
        room = len(self.data)
        if length > room - start:
            self.data += bytes(max(room, length))
        self.size = start + length
        return start

    def put(self, source: Bytes) -> None:
        """Append bytes."""
        length = len(source)
        start = self.reserve(length)
        put_bytes(self.data, start, source, 0, length)

    def cut_back(self, size: int) -> None:
        """Truncate to a size."""
        if not 0 <= size <= self.size:
            raise ValueError(f"cannot truncate {self.size} bytes to {size}")
        self.size = size

    def take(self) -> bytes:
        """Return all bytes written and empty the writer; its capacity stays."""
        taken = cut(self.data, 0, self.size)
        self.size = 0
        return taken


class Spare:
    """Pool of empty writers, which have already grown to the usual size.

    Thread-safe. Keeps at most `at_most` writers.
    """

    def __init__(self, at_most: int = _SPARES) -> None:
        # Several, so that take() and give() do not resize the list itself.
        self._kept = [Writer() for _ in range(_SPARES)]
        self._at_most = at_most

    def take(self) -> Writer:
        """Return an empty writer; give() it back once it is empty again."""
        try:
            return self._kept.pop()
        except IndexError:
            return Writer()

    def give(self, writer: Writer) -> None:
        """Return an empty writer to the pool, unless it has grown over 64 KiB."""
        if len(writer.data) <= _KEPT_MAX and len(self._kept) < self._at_most:
            self._kept.append(writer)
