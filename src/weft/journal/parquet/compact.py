"""Compaction: merges small sealed segments of a day into few large ones with the same rows.

The large one is written to a temporary file, compared with the small ones, and renamed; only then
are the small ones removed, in order. So at any point, even after a crash, every position is
present, and the remaining small ones reach to the end of the large one: a reader that takes the
later of two segments with the same positions finds no missing range behind it.
"""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c

from weft.journal import file_modes
from weft.journal.parquet import row_groups
from weft.journal.parquet.schema import journal_writer
from weft.journal.segment.file_names import JournalFolder, Segment, segments_of
from weft.journal.segment.verify import check_segment
from weft.journal.segment.writer import sync_folder

_GROUP_ROWS = row_groups.GROUP_ROWS
_GROUP_BYTES = row_groups.GROUP_BYTES
_BATCH_ROWS = 16_384
_PIECE_BYTES = 4 << 20
_ASIDE = "_merging.parquet"
_LOCK = "_merging.lock"


class Merged(NamedTuple):
    """Merged segment."""

    path: Path
    segments: int
    messages: int
    size: int


class NotMerged(NamedTuple):
    """Segment that was not merged, and why."""

    path: Path
    why: str


def merge_day(place: JournalFolder, day: str, target_bytes: int) -> Iterator[Merged | NotMerged]:
    """Merge the small segments of a day, as long as they are consecutive.

    Raises:
        OSError: a file cannot be read or written.
    """
    folder = place.day(day)
    with _lock_of(folder) as is_ours:
        if not is_ours:
            yield NotMerged(folder, "another process is merging it")
            return
        (folder / _ASIDE).unlink(missing_ok=True)
        yield from _finish(place, folder)
        segments = segments_of(place.folder.parent, place.service, place.node)
        stretch: list[Segment] = []
        for segment in _small(folder, segments, target_bytes):
            if not _may_join(stretch, segment, target_bytes):
                yield from _merge(folder, stretch)
                stretch = []
            faults = check_segment(segment).faults
            if faults:
                yield NotMerged(segment.path, faults[0].why)
            else:
                stretch.append(segment)
        yield from _merge(folder, stretch)


@contextmanager
def _lock_of(folder: Path) -> Iterator[bool]:
    """Try to lock a folder; yield whether no other process works on it."""
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, file_modes.JOURNAL)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = True
        except BlockingIOError:
            is_ours = False
        yield is_ours
    finally:
        os.close(fd)


def _small(folder: Path, segments: list[Segment], target_bytes: int) -> Iterator[Segment]:
    """Yield the segments of a folder that are worth merging and overlap no other segment."""
    for segment in segments:
        if segment.path.parent != folder or segment.state != "sealed":
            continue
        is_alone = not any(_overlap(segment, each) for each in segments if each != segment)
        if is_alone and segment.path.stat().st_size < target_bytes // 2:
            yield segment


def _overlap(one: Segment, other: Segment) -> bool:
    other_ends_before = 0 <= other.last < one.first
    return not other_ends_before and other.first <= one.last


def _may_join(stretch: list[Segment], segment: Segment, target_bytes: int) -> bool:
    size = sum(each.path.stat().st_size for each in (*stretch, segment))
    follows = not stretch or stretch[-1].last + 1 == segment.first
    return follows and size <= target_bytes


def _merge(folder: Path, stretch: list[Segment]) -> Iterator[Merged | NotMerged]:
    if len(stretch) < 2:
        return
    aside = folder / _ASIDE
    with journal_writer(aside) as writer:
        messages = 0
        for table in row_groups.grouped(_rows_of(stretch), _GROUP_ROWS, _GROUP_BYTES):
            writer.write_table(table, row_group_size=_GROUP_ROWS)
            messages += table.num_rows
    crc = _synced_crc(aside)
    if not _same(_rows(aside), _rows_of(stretch)):
        raise OSError(f"{aside} differs from the segments it was merged from")
    # Retention goes by the age of its messages.
    shutil.copystat(stretch[-1].path, aside)
    name = f"{stretch[0].first:020}-{stretch[-1].last:020}-{crc:08x}.parquet"
    path = aside.rename(folder / name)
    sync_folder(folder)
    _remove(stretch)
    yield Merged(path, len(stretch), messages, path.stat().st_size)


def _finish(place: JournalFolder, folder: Path) -> Iterator[NotMerged]:
    """Finish an interrupted merge: remove small segments that are already in a large one."""
    found = segments_of(place.folder.parent, place.service, place.node)
    left = [each for each in found if each.path.parent == folder and each.state == "sealed"]
    # Of two with the same positions, one is within the other.
    left.sort(key=lambda each: (each.first, -each.last))
    while left:
        large = left.pop(0)
        inner = [each for each in left if each.last <= large.last]
        left = [each for each in left if each not in inner]
        other = [
            each for each in inner if not _same(_rows(each.path), _rows(large.path, within=each))
        ]
        if other:
            # Then all stay: a single remaining one would hide the rest of the large one.
            yield NotMerged(other[0].path, f"{large.path.name} has other messages there")
        else:
            _remove(inner)


def _remove(segments: list[Segment]) -> None:
    """Remove segments in order, each synced to the disk."""
    for segment in segments:
        segment.path.unlink()
        sync_folder(segment.path.parent)


def _rows_of(segments: Iterable[Segment]) -> Iterator[pa.RecordBatch]:
    return chain.from_iterable(_rows(each.path) for each in segments)


def _rows(path: Path, within: Segment | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a file, with checksums; only positions of `within`, if given."""
    with row_groups.open_file(path) as file:
        groups = range(file.num_row_groups)
        for batch in row_groups.batches_of(file, groups, None, rows=_BATCH_ROWS):
            chosen = batch
            if within is not None:
                position = pc.field("position")
                chosen = batch.filter((position >= within.first) & (position <= within.last))
            if chosen.num_rows:
                yield chosen


def _same(left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]) -> bool:
    """Return whether two sequences of batches hold the same rows, however they are split."""
    one, other = next(left, None), next(right, None)
    while one is not None and other is not None:
        rows = min(one.num_rows, other.num_rows)
        if not one.slice(0, rows).equals(other.slice(0, rows)):
            return False
        one = one.slice(rows) if rows < one.num_rows else next(left, None)
        other = other.slice(rows) if rows < other.num_rows else next(right, None)
    return one is None and other is None


def _synced_crc(path: Path) -> int:
    crc = 0
    with path.open("r+b") as file:
        os.fsync(file.fileno())
        while piece := file.read(_PIECE_BYTES):
            crc = crc32c(piece, crc)
    return crc
