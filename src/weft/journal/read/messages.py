"""Messages of one node's journal, one by one, in order of positions.

Where two segments have the same positions, the later one counts: a writer that was not sure of the
end of a segment has begun another. An open segment is read as far as it is written.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.journal.parquet.sealed_files import CHECKED, Damaged
from weft.journal.read.record import Hole, JournalRecord
from weft.journal.segment.block_index import LANDMARKS
from weft.journal.segment.blocks import (
    Block,
    BlockKind,
    Bytes,
    Damage,
    blocks_in,
    message_end,
    salt_of,
)
from weft.journal.segment.file_names import Segment, segments_of

# How often in a row a segment may have been renamed since it was listed.
_TRIES_MAX = 100


def history(
    root: Path, service: str, node: str, first: int | None = None, last: int | None = None
) -> Iterator[JournalRecord | Hole]:
    """Yield the messages of one node's journal, and the missing ranges between them.

    From position `first` on, or from the earliest that is available.

    Raises:
        OSError: a segment cannot be read.
    """
    segments = segments_of(root, service, node)
    position = first if first is not None else segments[0].first if segments else 0
    tries = 0
    while segments:
        segment = segments.pop(0)
        ends = segments[0].first if segments else None
        if last is not None:
            ends = min(ends, last + 1) if ends is not None else last + 1
        if ends is not None and ends <= position:
            continue
        try:
            for found in _messages(segment, position, ends):
                yield found
                position = (found.position if isinstance(found, JournalRecord) else found.last) + 1
        except FileNotFoundError:
            # Sealed or completed since it was listed: it has another name now, or was removed.
            tries += 1
            if tries > _TRIES_MAX:
                raise
            segments = segments_of(root, service, node)
            continue
        tries = 0
        # Positions neither present nor missing were torn off by a crash.
        done = segment.last + 1 if ends is None else min(segment.last + 1, ends)
        position = max(position, done)


@contextmanager
def mapped(path: Path) -> Iterator[Bytes]:
    """Map a file into memory, as far as it is written now; pages are read on access.

    Raises:
        OSError: unreadable file.
    """
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield b""
            return
        with (
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole,
            memoryview(whole) as data,
        ):
            yield data


def _messages(segment: Segment, first: int, ends: int | None) -> Iterator[JournalRecord | Hole]:
    """Yield the messages of a segment from `first` on, up to `ends`, which is exclusive."""
    if 0 <= segment.last < first:
        return
    if segment.state == "sealed":
        yield from _sealed(segment, first, ends)
        return
    with mapped(segment.path) as data:
        yield from _found_in(data, segment, first, ends)


def _sealed(segment: Segment, first: int, ends: int | None) -> Iterator[JournalRecord | Hole]:
    # A large import that only readers of old messages need.
    from weft.journal.parquet.schema import messages_in  # noqa: PLC0415

    if segment.first > first:
        yield Hole(first, segment.first - 1, f"{segment.path.name} begins later")
    last = segment.last if ends is None else min(segment.last, ends - 1)
    position = max(first, segment.first)
    try:
        CHECKED.check(segment)
        for kept in messages_in(segment.path, position, last):
            yield kept
            position = kept.position + 1
    except Damaged as damage:
        if position <= last:
            yield Hole(position, last, str(damage))


def _found_in(
    data: Bytes, segment: Segment, first: int, ends: int | None
) -> Iterator[JournalRecord | Hole]:
    expected = first
    why = f"{segment.path.name} does not have them"
    salt = salt_of(data, is_full=segment.state == "full")
    for found in blocks_in(data, LANDMARKS.start(segment.path, data, first, salt), salt):
        if isinstance(found, Damage):
            # The end of an open segment may still be being written: not a missing range yet.
            why = f"{segment.path.name}: bytes {found.start} … {found.end}: {found.why}"
        elif found.kind in (BlockKind.FRAMES, BlockKind.TORN):
            if found.first > expected:
                yield Hole(expected, found.first - 1, why)
            if found.kind == BlockKind.FRAMES:
                yield from _frames(data, found, expected, ends)
            expected = max(expected, found.first + found.frames)
        if ends is not None and expected >= ends:
            return
    if segment.last >= expected:
        yield Hole(expected, segment.last, why)


def _frames(
    data: Bytes, block: Block, first: int, ends: int | None
) -> Iterator[JournalRecord | Hole]:
    body = bytes(data[block.body : block.end])
    at = 0
    after = block.first + block.frames
    for position in range(block.first, after):
        end = message_end(body, at, len(body))
        if end < 0:
            start = max(position, first)
            last = after - 1 if ends is None else min(after, ends) - 1
            if start <= last:
                yield Hole(start, last, f"position {position} has no whole message")
            return
        if position >= first and (ends is None or position < ends):
            yield JournalRecord(position, body[at:end])
        at = end
