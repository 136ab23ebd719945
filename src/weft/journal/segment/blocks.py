"""Blocks of a segment: a header with checksums, and whole frames.

    magic "WFT2"   u64 salt   u32 kind   u32 length   u32 frames   u64 first   u32 crc(body)
    u32 crc(header)

Little-endian; both checksums are CRC-32C. `length` is the size of the body, `frames` the number of
frames in it and `first` the position of the first of them. The first block of a segment describes
it; the last block, of a segment that was completed, marks its end. A torn block has no body and
stands for messages that a crash tore off; a filler aligns the next block.

The salt is random and the same in every block of a segment. Publishers do not know it, so a
message's body cannot contain a block that a reader takes for real after damage.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from crc32c import crc32c

from weft.broker.journal.batcher import BLOCK_HEADER_BYTES, JournalBatch
from weft.wire.frames import HEADER_BYTES
from weft.wire.frames import Kind as FrameKind

MAGIC = b"WFT2"
# Not the salt of any block.
UNKNOWN_SALT = -1

_FIELDS = struct.Struct("<4sQIIIQI")
_CHECK = struct.Struct("<I")
_SIZE = struct.Struct("<I")
_MESSAGE = int(FrameKind.MESSAGE)
_SALT = struct.Struct("<QI")
_LATEST = struct.Struct("<q")
# The smallest message is a frame header: this bounds how many can be missing.
_FRAME_MIN_BYTES = HEADER_BYTES
# Bytes searched for a block at a time.
_PIECE_BYTES = 1 << 20

Bytes = bytes | bytearray | memoryview


class BlockKind(IntEnum):
    """Contents of a block."""

    ABOUT = 1
    FRAMES = 2
    END = 3
    # Positions without messages: a crash interrupted their write.
    TORN = 4
    FILLER = 5


class Block(NamedTuple):
    """Block with a valid header: `data[start:end]`, its body starts at `body`."""

    start: int
    body: int
    end: int
    kind: int
    frames: int
    first: int
    crc: int
    salt: int


class Damage(NamedTuple):
    """Bytes that are not valid blocks, and why.

    `is_tail`: no block follows; then it may be an interrupted write.
    """

    start: int
    end: int
    why: str
    is_tail: bool


def seal_batch(batch: JournalBatch, salt: int) -> None:
    """Write the headers of a batch's blocks into the space reserved for them."""
    with memoryview(batch.data) as data:
        for block in batch.blocks:
            start = block.start + BLOCK_HEADER_BYTES
            header = header_of(
                BlockKind.FRAMES, data[start : block.end], block.frames, block.first, salt
            )
            data[block.start : start] = header


def header_of(kind: BlockKind, body: Bytes, count: int, first: int, salt: int) -> bytes:
    """Return the header of a block."""
    fields = _FIELDS.pack(MAGIC, salt, kind, len(body), count, first, crc32c(body))
    return fields + _CHECK.pack(crc32c(fields))


def about_block(about: bytes, first: int, salt: int) -> bytes:
    """Return the first block of a segment; its body repeats the salt, with a checksum."""
    packed = salt.to_bytes(8, "little")
    body = packed + _CHECK.pack(crc32c(packed)) + about
    return header_of(BlockKind.ABOUT, body, 0, first, salt) + body


def about_in(data: Bytes, block: Block) -> bytes:
    """Return the description of a segment from its first block."""
    return bytes(data[block.body + _SALT.size : block.end])


def end_block(position: int, salt: int, latest_ns: int = 0) -> bytes:
    """Return the block that ends a segment; `latest_ns` is its latest message time, or 0."""
    body = _LATEST.pack(latest_ns)
    return header_of(BlockKind.END, body, 0, position, salt) + body


def torn_block(first: int, frames: int, salt: int) -> bytes:
    """Return the block in place of messages that a crash interrupted."""
    return header_of(BlockKind.TORN, b"", frames, first, salt)


def resalted(block: Block, salt: int) -> bytes:
    """Return the header of a block with another salt."""
    fields = _FIELDS.pack(
        MAGIC, salt, block.kind, block.end - block.body, block.frames, block.first, block.crc
    )
    return fields + _CHECK.pack(crc32c(fields))


def filler(size: int, position: int, salt: int) -> bytes:
    """Return a filler block of a size."""
    body = bytes(size - BLOCK_HEADER_BYTES)
    return header_of(BlockKind.FILLER, body, 0, position, salt) + body


def filler_size(end: int, border_bytes: int) -> int:
    """Return the size of a filler at an offset that ends on a border; 0 if none is needed."""
    size = -end % border_bytes
    # A filler holds at least a header.
    return size + border_bytes if 0 < size < BLOCK_HEADER_BYTES else size


def salt_of(data: Bytes, *, is_full: bool = False) -> int:
    """Return the salt of a segment; UNKNOWN_SALT if every copy of it is damaged.

    Reads it only where no message can be: in the first header, behind that, and, if the segment
    `is_full`, in its last header.
    """
    first = header_at(data, 0)
    if first is not None and first.kind == BlockKind.ABOUT:
        return first.salt
    start = BLOCK_HEADER_BYTES
    if len(data) >= start + _SALT.size:
        salt: int
        salt, check = _SALT.unpack_from(data, start)
        if crc32c(data[start : start + 8]) == check:
            return salt
    last = _end_of(data) if is_full else None
    return last.salt if last is not None else UNKNOWN_SALT


def latest_in(data: Bytes) -> int | None:
    """Return the latest time of a message in a complete segment; None if unknown."""
    last = _end_of(data)
    if last is None or last.salt != salt_of(data, is_full=True) or not is_whole(data, last):
        return None
    latest_ns: int
    (latest_ns,) = _LATEST.unpack_from(data, last.body)
    return latest_ns or None


def _end_of(data: Bytes) -> Block | None:
    last = header_at(data, len(data) - BLOCK_HEADER_BYTES - _LATEST.size)
    return last if last is not None and last.kind == BlockKind.END else None


def frames_max_in(size_bytes: int) -> int:
    """Return the maximum number of messages in a number of bytes."""
    return max(size_bytes, 0) // _FRAME_MIN_BYTES


def header_at(data: Bytes, at: int) -> Block | None:
    """Return the block at an offset, whatever its salt: only where no message can be."""
    body = at + BLOCK_HEADER_BYTES
    if at < 0 or body > len(data) or data[at : at + 4] != MAGIC:
        return None
    _, salt, kind, length, count, first, crc = _FIELDS.unpack_from(data, at)
    (check,) = _CHECK.unpack_from(data, body - _CHECK.size)
    if crc32c(data[at : body - _CHECK.size]) != check:
        return None
    return Block(at, body, body + length, kind, count, first, crc, salt)


def block_at(data: Bytes, at: int, salt: int) -> Block | None:
    """Return the block whose whole header is at an offset; None if there is none."""
    block = header_at(data, at)
    return block if block is not None and block.salt == salt else None


def is_whole(data: Bytes, block: Block) -> bool:
    """Return whether the body of a block is complete and matches its checksum."""
    return block.end <= len(data) and crc32c(data[block.body : block.end]) == block.crc


def blocks_in(data: Bytes, at: int = 0, salt: int | None = None) -> Iterator[Block | Damage]:
    """Yield every block from an offset on, and the damage between them.

    The salt is read from the segment if `data` starts with it. A block whose position is beyond
    what the missing bytes could have held is not valid.
    """
    end = len(data)
    wanted = salt_of(data) if salt is None else salt
    last: int | None = None
    while at < end:
        block = block_at(data, at, wanted)
        if block is not None and is_whole(data, block) and _can_follow(block, last, end):
            yield block
            last = block.first + block.frames
            at = block.end
            continue
        after = _next_block(data, at + 1, wanted, last)
        why = _why(data, at, block)
        yield Damage(at, end if after < 0 else after, why, after < 0)
        if after < 0:
            return
        at = after


def message_end(data: Bytes, at: int, end: int) -> int:
    """Return where the message at an offset ends; -1 if there is no whole one before `end`.

    A checksum only proves that a block is unchanged, not that a journal wrote it.
    """
    if end - at < HEADER_BYTES or data[at + 4] != _MESSAGE or not data[at + 6]:
        return -1
    (size,) = _SIZE.unpack_from(data, at)
    least = HEADER_BYTES + data[at + 6] + data[at + 7]
    return at + size if least <= size <= end - at else -1


def _can_follow(block: Block, position: int | None, size_bytes: int) -> bool:
    return position is None or block.first <= position + frames_max_in(size_bytes)


def _next_block(data: Bytes, at: int, salt: int, position: int | None) -> int:
    """Return the offset of the next valid block; -1 if there is none."""
    if salt == UNKNOWN_SALT:
        return -1
    # Publishers do not know the salt: no body contains these bytes, except by chance.
    beginning = MAGIC + salt.to_bytes(8, "little")
    while at < len(data):
        piece = bytes(data[at : at + _PIECE_BYTES])
        found = piece.find(beginning)
        while found >= 0:
            block = block_at(data, at + found, salt)
            is_next = block is not None and is_whole(data, block)
            if is_next and block is not None and _can_follow(block, position, len(data)):
                return at + found
            found = piece.find(beginning, found + 1)
        # A block may begin at the end of a piece.
        at += _PIECE_BYTES - len(beginning) + 1
    return -1


def _why(data: Bytes, at: int, block: Block | None) -> str:
    if block is None:
        if len(data) - at < BLOCK_HEADER_BYTES:
            return "half a header"
        return "no block begins here, or its header is damaged"
    if block.end > len(data):
        return f"half a block: {len(data) - at} of {block.end - at} bytes"
    if is_whole(data, block):
        return f"position {block.first} cannot follow"
    return f"the checksum of {block.frames} messages is wrong"
