"""A buffer that frames and messages are written into, one after the other.

It grows by doubling and keeps its room when taken from, so a steady writer allocates nothing.
"""

from weft.wire.byteops import Bytes, cut, put_bytes

_FIRST_ROOM = 256
# A spare writer with more room than this is not kept.
_KEPT_MAX = 64 << 10
_SPARES = 8


class Writer:
    """Bytes written so far: `data[:size]`; what lies beyond is room."""

    def __init__(self) -> None:
        self.data = bytearray(_FIRST_ROOM)
        self.size = 0

    def reserve(self, length: int) -> int:
        """Make room for so many bytes at the end and return its offset; the caller fills it."""
        if length < 0:
            raise ValueError(f"no room of {length} bytes can be made")
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
        """Forget what was written beyond so many bytes."""
        if not 0 <= size <= self.size:
            raise ValueError(f"{self.size} bytes cannot be cut back to {size}")
        self.size = size

    def take(self) -> bytes:
        """Everything written so far; the writer is empty afterwards and keeps its room."""
        taken = cut(self.data, 0, self.size)
        self.size = 0
        return taken


class Spare:
    """Writers for whoever needs one now and then, so that they have grown to what is usual there.

    Any thread may take and give. So many are kept `at_most`.
    """

    def __init__(self, at_most: int = _SPARES) -> None:
        # Several, so that the list itself is never grown and shrunk for taking one and giving it.
        self._kept = [Writer() for _ in range(_SPARES)]
        self._at_most = at_most

    def take(self) -> Writer:
        """A writer, empty; give() it back when it is."""
        try:
            return self._kept.pop()
        except IndexError:
            return Writer()

    def give(self, writer: Writer) -> None:
        """Keep a writer, empty, for the next one, unless it has grown very large."""
        if len(writer.data) <= _KEPT_MAX and len(self._kept) < self._at_most:
            self._kept.append(writer)
