"""Retransmit buffer: frames recently sent to other gateways.

Chunks hold records of sizes, forwarding headers and frames. Adding a record costs a copy and no
object; lookups scan the records. The oldest chunk is dropped when the buffer is full or the chunk
too old.
"""

from collections import deque
from typing import NamedTuple

from weft.mesh.routing.forward_header import COUNT_AT, ENTRY_BYTES, FIRST_MARK, HOPS_AT
from weft.wire.buffer import Writer
from weft.wire.byteops import cut, put_bytes, put_u32, u32_at, u64_at
from weft.wire.frames import HEADER_BYTES

RING_BYTES = 16 << 20
CHUNK_BYTES = 256 << 10
RING_NS = 30_000_000_000

_CHUNK = CHUNK_BYTES
_ENTRY = ENTRY_BYTES
_COUNT = COUNT_AT
_HOPS = HOPS_AT
_HEADER = HEADER_BYTES


class SentFrames(NamedTuple):
    """Frames as sent to one gateway: number of the first, count and content."""

    first: int
    frame_count: int
    flags: int
    group: bytes
    frames: bytes
    mark: int = FIRST_MARK


class Chunk:
    """Consecutive records, with the time of the last one."""

    def __init__(self) -> None:
        self.writer = Writer()
        self.time_ns = 0


class RetransmitBuffer:
    """Retransmit buffer of one gateway, bounded in bytes and age."""

    def __init__(self, limit_bytes: int = RING_BYTES) -> None:
        self._limit = limit_bytes
        self._chunks: deque[Chunk] = deque()
        self._spare: Chunk | None = None
        self._last: Chunk | None = None
        self._bytes = 0
        self._record = 0

    @property
    def size(self) -> int:
        """Bytes held."""
        return self._bytes

    def begin(self, now_ns: int) -> None:
        """Begin a record: forwarding headers follow, then the frames."""
        chunk = self._last
        if chunk is None or chunk.writer.size >= _CHUNK:
            chunk = self._spare or Chunk()
            self._spare = None
            self._chunks.append(chunk)
            self._last = chunk
            while self._bytes > self._limit and len(self._chunks) > 1:
                self._drop()
        chunk.time_ns = now_ns
        self._record = chunk.writer.reserve(8)

    def add(self, header: bytearray) -> None:
        """Add a forwarding header that the frames were sent with."""
        if self._last is not None:
            self._last.writer.put(header)

    def finish(self, data: bytearray, start: int, end: int) -> None:
        """Complete the record with its frames."""
        chunk = self._last
        if chunk is None or not 0 <= start <= end <= len(data):
            raise ValueError(f"bytes {start} … {end} are not among {len(data)}")
        writer = chunk.writer
        headers = writer.size - self._record - 8
        at = writer.reserve(end - start)
        put_bytes(writer.data, at, data, start, end - start)
        put_u32(writer.data, self._record, writer.size - self._record)
        put_u32(writer.data, self._record + 4, headers)
        self._bytes += writer.size - self._record

    def expire(self, now_ns: int) -> None:
        """Drop old chunks."""
        while self._chunks:
            oldest = self._chunks[0]
            if now_ns - oldest.time_ns <= RING_NS:
                return
            self._drop()

    def find(self, number: int, first: int, last: int) -> list[SentFrames]:
        """Return the available frames from `first` to before `last` of one gateway, in order."""
        search = Search(number, first, last)
        for chunk in self._chunks:
            data = chunk.writer.data
            size = chunk.writer.size
            at = 0
            while at < size:
                search.look(data, at)
                at += u32_at(data, at)
        return search.found

    def _drop(self) -> None:
        chunk = self._chunks.popleft()
        self._bytes -= chunk.writer.size
        if chunk is self._last:
            self._last = None
        if len(chunk.writer.data) <= 2 * _CHUNK:
            chunk.writer.cut_back(0)
            self._spare = chunk


class Search:
    """Scan of records for the frames from `first` to before `last` of one gateway."""

    def __init__(self, number: int, first: int, last: int) -> None:
        self.found: list[SentFrames] = []
        self._number = number
        self._first = first
        self._last = last

    def look(self, data: bytearray, at: int) -> None:
        """Check the record at an offset."""
        headers_end = at + 8 + u32_at(data, at + 4)
        header = at + 8
        while header < headers_end:
            header_end = header + u32_at(data, header)
            entry = header + _HEADER + data[header + 7] + 4 * data[header + _HOPS]
            while entry < header_end:
                if u32_at(data, entry) == self._number and data[entry + 6]:
                    self._take(data, at, header, entry)
                    return
                entry += _ENTRY
            header = header_end

    def _take(self, data: bytearray, at: int, header: int, entry: int) -> None:
        """Collect the matching frames of a record, given the entry of its forwarding header."""
        number = u64_at(data, entry + 8)
        mark = data[entry + 6] + 256 * data[entry + 7]
        start = at + 8 + u32_at(data, at + 4)
        left = u32_at(data, header + _COUNT)
        while left > 0 and number < self._first:
            start += u32_at(data, start)
            number += 1
            left -= 1
        end = start
        count = 0
        while count < left and number + count < self._last:
            end += u32_at(data, end)
            count += 1
        if count > 0:
            group = cut(data, header + _HEADER, header + _HEADER + data[header + 7])
            frames = cut(data, start, end)
            self.found.append(SentFrames(number, count, data[header + 5], group, frames, mark))
