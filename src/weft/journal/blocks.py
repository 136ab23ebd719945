"""The blocks that a segment is made of: a header with checksums, and whole frames.

    magic "WFTB"   u32 kind   u32 length   u32 frames   u64 first   u32 crc(body)   u32 crc(header)

Little-endian; both checksums are CRC-32C. `length` is that of the body, `frames` how many it
holds and `first` the position of the first of them. The first block of a segment says what it is,
the last one, of a segment that was ended properly, that nothing follows. One without a body stands
for what a crash tore off; a filler says nothing, so that what follows begins on a border.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from crc32c import crc32c

from weft.core.frames import HEADER_BYTES
from weft.core.frames import Kind as FrameKind
from weft.core.journal import BLOCK_HEADER_BYTES, Batch

MAGIC = b"WFTB"

_FIELDS = struct.Struct("<4sIIIQI")
_CHECK = struct.Struct("<I")
_SIZE = struct.Struct("<I")
_MESSAGE = int(FrameKind.MESSAGE)

Bytes = bytes | bytearray | memoryview


class Kind(IntEnum):
    """What is in a block."""

    ABOUT = 1
    FRAMES = 2
    END = 3
    # Positions that nobody has: they were being written at a crash.
    TORN = 4
    FILLER = 5


class Block(NamedTuple):
    """A block whose header is right: `data[start:end]`, its body from `body` on."""

    start: int
    body: int
    end: int
    kind: int
    frames: int
    first: int
    crc: int


class Damage(NamedTuple):
    """Bytes that are no blocks, and what is wrong with them.

    `is_tail` says that no block follows: then they may be what was being written when it ended.
    """

    start: int
    end: int
    why: str
    is_tail: bool


def seal_batch(batch: Batch) -> None:
    """Write the headers of a batch's blocks into the room that was left for them."""
    with memoryview(batch.data) as data:
        for block in batch.blocks:
            start = block.start + BLOCK_HEADER_BYTES
            header = header_of(Kind.FRAMES, data[start : block.end], block.frames, block.first)
            data[block.start : start] = header


def header_of(kind: Kind, body: Bytes, count: int, first: int) -> bytes:
    """The header of a block."""
    fields = _FIELDS.pack(MAGIC, kind, len(body), count, first, crc32c(body))
    return fields + _CHECK.pack(crc32c(fields))


def about_block(about: bytes, first: int) -> bytes:
    """The block that a segment begins with."""
    return header_of(Kind.ABOUT, about, 0, first) + about


def end_block(position: int) -> bytes:
    """The block that says that nothing follows."""
    return header_of(Kind.END, b"", 0, position)


def torn_block(first: int, frames: int) -> bytes:
    """The block in place of so many messages that a crash came before the end of."""
    return header_of(Kind.TORN, b"", frames, first)


def filler(size: int, position: int) -> bytes:
    """A block of so many bytes that says nothing."""
    body = bytes(size - BLOCK_HEADER_BYTES)
    return header_of(Kind.FILLER, body, 0, position) + body


def filler_size(end: int, border_bytes: int) -> int:
    """How large a filler at an offset is to end on a border; 0 if that is one."""
    size = -end % border_bytes
    # A header has to have room.
    return size + border_bytes if 0 < size < BLOCK_HEADER_BYTES else size


def block_at(data: Bytes, at: int) -> Block | None:
    """The block whose header is at an offset; None if none is there, or not all of it."""
    body = at + BLOCK_HEADER_BYTES
    if body > len(data) or data[at : at + 4] != MAGIC:
        return None
    _, kind, length, count, first, crc = _FIELDS.unpack_from(data, at)
    (check,) = _CHECK.unpack_from(data, body - _CHECK.size)
    if crc32c(data[at : body - _CHECK.size]) != check:
        return None
    return Block(at, body, body + length, kind, count, first, crc)


def is_whole(data: Bytes, block: Block) -> bool:
    """Say if the body of a block is all there, and right."""
    return block.end <= len(data) and crc32c(data[block.body : block.end]) == block.crc


def blocks_in(data: Bytes, at: int = 0) -> Iterator[Block | Damage]:
    """Every block from an offset on, and whatever lies between them."""
    end = len(data)
    while at < end:
        block = block_at(data, at)
        if block is not None and is_whole(data, block):
            yield block
            at = block.end
            continue
        after = _next_block(data, at + 1)
        why = _why(data, at, block)
        yield Damage(at, end if after < 0 else after, why, after < 0)
        if after < 0:
            return
        at = after


def message_end(data: Bytes, at: int, end: int) -> int:
    """Return where the message at an offset ends; -1 if no whole one is between there and `end`.

    A checksum only proves that a block is as it was written, not that it was written by a journal.
    """
    if end - at < HEADER_BYTES or data[at + 4] != _MESSAGE or not data[at + 6]:
        return -1
    (size,) = _SIZE.unpack_from(data, at)
    least = HEADER_BYTES + data[at + 6] + data[at + 7]
    return at + size if least <= size <= end - at else -1


def _next_block(data: Bytes, at: int) -> int:
    """Where the next whole block is; -1 if there is none."""
    buffer = data if isinstance(data, bytes | bytearray) else bytes(data[at:])
    base = 0 if buffer is data else at
    found = buffer.find(MAGIC, at - base)
    while found >= 0:
        block = block_at(data, found + base)
        if block is not None and is_whole(data, block):
            return found + base
        found = buffer.find(MAGIC, found + 1)
    return -1


def _why(data: Bytes, at: int, block: Block | None) -> str:
    if block is None:
        if len(data) - at < BLOCK_HEADER_BYTES:
            return "half a header"
        return "no block begins here, or its header is damaged"
    if block.end > len(data):
        return f"half a block: {len(data) - at} of {block.end - at} bytes"
    return f"the checksum of {block.frames} messages is wrong"
