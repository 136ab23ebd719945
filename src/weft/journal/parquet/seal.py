"""Sealing: full segments become Parquet, verified before they replace the original.

A crash at any point leaves either the segment or the sealed file, or both with the same messages.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from crc32c import crc32c

from weft.journal.parquet import row_groups
from weft.journal.parquet.columns import Columns
from weft.journal.parquet.schema import batch_of, journal_writer
from weft.journal.read.messages import mapped
from weft.journal.segment.blocks import Block, BlockKind, Bytes, Damage, blocks_in, salt_of
from weft.journal.segment.file_names import JournalFolder, Segment, segments_of
from weft.journal.segment.writer import sync_folder
from weft.wire.byteops import i64_at

_GROUP_ROWS = row_groups.GROUP_ROWS
_GROUP_BYTES = row_groups.GROUP_BYTES
_PIECE = 4 << 20
_TIME = 24


class Sealed(NamedTuple):
    """Sealed segment."""

    path: Path
    messages: int
    size: int


class NotSealed(NamedTuple):
    """Segment that was not sealed, and why."""

    path: Path
    why: str


def seal_all(root: Path, service: str, node: str) -> Iterator[Sealed | NotSealed]:
    """Seal every full segment of a node, the oldest first.

    Raises:
        OSError: a file cannot be read or written.
    """
    place = JournalFolder(root, service, node)
    _remove_unfinished(place)
    segments = segments_of(root, service, node)
    done = {each.first for each in segments if each.state == "sealed"}
    for segment in segments:
        if segment.state == "full":
            if segment.first in done:
                # A crash came between renaming the one and removing the other.
                segment.path.unlink()
            elif made := seal(place, segment):
                yield made


def seal(place: JournalFolder, segment: Segment) -> Sealed | NotSealed | None:
    """Seal one full segment; a damaged one stays, for inspection.

    None if it has no messages, only positions torn off by a crash: it stays as it is.

    Raises:
        OSError: a file cannot be read or written.
    """
    aside = place.aside(segment.first)
    with mapped(segment.path) as data:
        blocks = list(blocks_in(data, salt=salt_of(data, is_full=True)))
        damage = next((each for each in blocks if isinstance(each, Damage)), None)
        if damage is not None:
            why = f"bytes {damage.start} … {damage.end}: {damage.why}"
            return NotSealed(segment.path, why)
        frames = [
            each for each in blocks if isinstance(each, Block) and each.kind == BlockKind.FRAMES
        ]
        if not frames:
            return None
        try:
            with journal_writer(aside) as writer:
                for batch in _batches(data, frames):
                    writer.write_batch(batch)
        except ValueError as error:
            aside.unlink()
            return NotSealed(segment.path, str(error))
        began_ns = i64_at(bytes(data[frames[0].body : frames[0].body + 32]), _TIME)
    messages = sum(each.frames for each in frames)
    torn = sum(
        each.frames for each in blocks if isinstance(each, Block) and each.kind == BlockKind.TORN
    )
    if messages + torn != segment.last - segment.first + 1:
        aside.unlink()
        return NotSealed(segment.path, f"it has {messages} messages, which does not match its name")
    return _put_in_place(place, segment, aside, messages, began_ns)


def _batches(data: Bytes, blocks: list[Block]) -> Iterator[pa.RecordBatch]:
    columns = Columns()
    for block in blocks:
        for each in row_groups.block_parts(data, block, _GROUP_BYTES):
            is_over = columns.size + len(each.frames) > _GROUP_BYTES
            if columns.rows and (columns.rows >= _GROUP_ROWS or is_over):
                yield batch_of(columns)
                columns = Columns()
            columns.add(*each)
    if columns.rows:
        yield batch_of(columns)


def _put_in_place(
    place: JournalFolder, segment: Segment, aside: Path, messages: int, began_ns: int
) -> Sealed:
    with aside.open("r+b") as file:
        os.fsync(file.fileno())
        crc = size = 0
        while piece := file.read(_PIECE):
            crc = crc32c(piece, crc)
            size += len(piece)
    # Reads every page and verifies its checksum.
    rows = sum(batch.num_rows for batch in _read_all(aside))
    if rows != messages:
        raise OSError(f"{aside} has {rows} rows instead of {messages}")
    path = place.sealed(segment.first, segment.last, crc, began_ns)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Retention goes by the age of its messages.
    shutil.copystat(segment.path, aside)
    aside.rename(path)
    for folder in (path.parent, path.parent.parent, place.folder):
        sync_folder(folder)
    segment.path.unlink()
    return Sealed(path, messages, size)


def _read_all(path: Path) -> Iterator[pa.RecordBatch]:
    with row_groups.open_file(path) as file:
        yield from row_groups.batches_of(file, range(file.num_row_groups), None)


def _remove_unfinished(place: JournalFolder) -> None:
    """Remove temporary files that a crash left: their segments are still there."""
    for path in place.folder.glob(f"_aside-*-{place.node}.parquet"):
        path.unlink()
