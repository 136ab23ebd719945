"""Ranges of a journal as Arrow batches, for readers of millions of messages."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import WeftError
from weft.journal.parquet.columns import Columns
from weft.journal.parquet.row_groups import GROUP_BYTES, BlockPart, batches_of, block_parts
from weft.journal.parquet.schema import SCHEMA, batch_of, groups_in, opened
from weft.journal.parquet.sealed_files import Damaged
from weft.journal.read.sources import Shelf
from weft.journal.segment.blocks import Block, BlockKind, Bytes, Damage, blocks_in, message_end
from weft.journal.segment.file_names import Segment
from weft.wire.subjects import matches

ROWS = 65_536
BYTES = GROUP_BYTES
ALL_COLUMNS = tuple(SCHEMA.names)
# How often a segment may be renamed before it is opened.
_MISSES_MAX = 10
_REMOVED = "they were removed, or are damaged"

# Not from Python lists: for those pyarrow imports pandas, which takes longer than a short query.
_NOTHING = pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in SCHEMA], schema=SCHEMA)


class Range(NamedTuple):
    """The positions `first` … `end` - 1 of one node's journal."""

    shelf: Shelf
    node: str
    first: int
    end: int


class Lost(WeftError):
    """Messages that should be in a journal are missing."""


class BatchQuery(NamedTuple):
    """Wanted range, patterns and columns, and whether messages may be missing."""

    wanted: Range
    patterns: tuple[bytes, ...]
    may_lack: bool
    columns: Sequence[str]

    def lack(self, first: int, last: int, why: str) -> None:
        """Accept missing positions, if that is allowed.

        Raises:
            Lost: positions must not be missing.
        """
        if not self.may_lack:
            wanted = self.wanted
            raise Lost(
                f"positions {first} … {last} of node {wanted.node} are not in the journal of"
                f" {wanted.shelf.service}: {why}; failOnDataLoss=false ignores this"
            )


def batches_in(
    wanted: Range,
    patterns: tuple[bytes, ...],
    *,
    may_lack: bool,
    columns: Sequence[str] = ALL_COLUMNS,
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range that match a pattern, with some columns of the Parquet schema.

    Other columns are not read, except the position, which is always included. A damaged block loses
    its messages, a damaged sealed segment all of its messages.

    Raises:
        Lost: messages are missing, and `may_lack` is false.
        OSError: a segment cannot be read.
    """
    query = BatchQuery(wanted, patterns, may_lack, columns)
    known = _Known(wanted)
    position = wanted.first
    while position < wanted.end:
        segment, ends = known.segment_of(position)
        if segment is None or segment.first > position:
            if known.is_outdated():
                continue
            end = wanted.end if segment is None else min(segment.first, wanted.end)
            query.lack(position, end - 1, _REMOVED)
            position = end
            continue
        end = wanted.end if ends is None else min(ends, wanted.end)
        part = query._replace(wanted=wanted._replace(end=end))
        why = _REMOVED
        try:
            for batch, reached in _segment_batches(part, segment, position):
                if batch.num_rows:
                    yield batch
                position = reached
        except FileNotFoundError as error:
            known.missed(position, error)
            continue
        except Damaged as damage:
            why = str(damage)
        if position < end:
            if segment.state == "open" and known.is_outdated():
                continue
            query.lack(position, end - 1, why)
            position = end


class _Known:
    """Segments of a node: listed once, and again only if the list may be outdated."""

    def __init__(self, wanted: Range) -> None:
        self._wanted = wanted
        self._segments: list[Segment] = []
        self._is_listed = False
        # Whether the last result is from a list of that moment.
        self._is_new = False
        self._missed_at, self._misses = -1, 0

    def is_outdated(self) -> bool:
        """Return whether listing again may help, and do so next time."""
        if self._is_new:
            return False
        self._is_listed = False
        return True

    def missed(self, position: int, error: FileNotFoundError) -> None:
        """List again next time: a segment that was sealed or merged has another name.

        Raises:
            FileNotFoundError: missed over _MISSES_MAX times at this position.
        """
        self._misses = self._misses + 1 if position == self._missed_at else 1
        self._missed_at = position
        if self._misses > _MISSES_MAX:
            raise error
        self._is_listed = False

    def segment_of(self, position: int) -> tuple[Segment | None, int | None]:
        """Return the segment of a position, or the first one after it, and its end if known.

        Of two with the same positions the later one counts: one ends where the next one begins.
        """
        self._is_new = not self._is_listed
        if not self._is_listed:
            self._segments = self._wanted.shelf.segments(self._wanted.node)
            self._is_listed = True
        found: Segment | None = None
        for segment in self._segments:
            if segment.first > position:
                if found is None:
                    return segment, segment.first
                is_before = 0 <= found.last < segment.first
                return found, found.last + 1 if is_before else segment.first
            if segment.last < 0 or segment.last >= position:
                found = segment
        return found, None if found is None or found.last < 0 else found.last + 1


def _segment_batches(
    query: BatchQuery, segment: Segment, first: int
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield batches, each with the position after it."""
    if segment.state == "sealed":
        yield from _sealed_batches(query, segment, first)
        return
    found = Columns(query.patterns)
    position = first
    for each in _parts_of(query, segment, first):
        is_over = found.size + len(each.frames) > BYTES
        if found.rows and (found.rows >= ROWS or is_over):
            yield batch_of(found), position
            found = Columns(query.patterns)
        if each.frames:
            found.add(*each)
        position = each.first + each.rows
    yield batch_of(found), position


def _parts_of(query: BatchQuery, segment: Segment, first: int) -> Iterator[BlockPart]:
    """Yield the frames of a segment of blocks; no frames for positions torn off by a crash."""
    wanted = query.wanted
    position, end = first, wanted.end
    for data, start, salt in wanted.shelf.blocks(segment, first, end):
        why = _REMOVED
        for block in blocks_in(data, start, salt):
            if isinstance(block, Damage):
                # The next block shows which positions are missing.
                why = f"{segment.path.name}: {block.why}"
                continue
            if position >= end:
                break
            if block.first > position:
                after = min(block.first, end)
                query.lack(position, after - 1, why)
                position = after
            after = min(block.first + block.frames, end)
            if after <= position:
                continue
            if block.kind == BlockKind.TORN:
                yield BlockPart(b"", position, after - position)
            else:
                yield from _clipped(data, block, position, end)
            position = after


def _clipped(data: Bytes, block: Block, first: int, end: int) -> Iterator[BlockPart]:
    """Yield the frames of a block between two positions, in parts of bounded size.

    Raises:
        ValueError: the block holds fewer whole frames than its header states.
    """
    start, after = block.body, block.end
    at = block.body
    last = min(block.first + block.frames, end)
    if first > block.first or last < block.first + block.frames:
        for position in range(block.first, last):
            if position == first:
                start = at
            at = message_end(data, at, block.end)
            if at < 0:
                raise ValueError(f"position {position} has no whole message")
        after = at
    part = block._replace(body=start, end=after, first=first, frames=last - first)
    yield from block_parts(data, part, BYTES)


def _sealed_batches(
    query: BatchQuery, segment: Segment, first: int
) -> Iterator[tuple[pa.RecordBatch, int]]:
    patterns = query.patterns
    end = query.wanted.end
    read = {*query.columns, "position"}
    if b">" not in patterns:
        read.add("subject")
    source = query.wanted.shelf.sealed(segment)
    # Few large reads from a remote source; from a local file, only the next pages.
    with opened(source, is_ahead=not isinstance(source, Path)) as file:
        groups = groups_in(file, first, end - 1)
        for batch in batches_of(file, groups, sorted(read), rows=ROWS, size_bytes=BYTES):
            positions = batch.column("position")
            low, high = positions[0].as_py(), positions[-1].as_py()
            if low >= end:
                break
            if high < first:
                continue
            if low < first or high >= end:
                batch = _between(batch, first, end)  # noqa: PLW2901  # the same, shorter
            yield _matching(batch, patterns), min(high + 1, end)
    # Complete when it was sealed: other positions were torn off by a crash before anyone read them.
    yield _NOTHING, min(segment.last + 1, end)


def _between(batch: pa.RecordBatch, first: int, end: int) -> pa.RecordBatch:
    """Return the rows between two positions, without copying; rows are in order."""
    positions = batch.column("position")
    before = pc.sum(pc.less(positions, first)).as_py()
    within = pc.sum(pc.less(positions, end)).as_py() - before
    return batch.slice(before, within)


def _matching(batch: pa.RecordBatch, patterns: tuple[bytes, ...]) -> pa.RecordBatch:
    if b">" in patterns:
        return batch
    subjects = pc.unique(batch.column("subject")).to_pylist()
    wanted = [
        subject
        for subject in subjects
        if any(matches(pattern, subject.encode()) for pattern in patterns)
    ]
    if len(wanted) == len(subjects):
        return batch
    return batch.filter(pc.is_in(batch.column("subject"), pa.array(wanted, pa.string())))
