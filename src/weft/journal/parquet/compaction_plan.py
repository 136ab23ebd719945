"""Compaction plan: when the small sealed segments of a day are merged, and up to which size.

A past day is merged as soon as two of its segments can be; for today only many at once, so that few
bytes are rewritten. A folder is examined again only after a change: the modification time of the
merge's lock file records when it was done.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from time import time_ns

from weft.journal.retention import Keep
from weft.journal.segment.file_names import JournalFolder, Segment, day_of, segments_of

TARGET_BYTES = 128 << 20
# Minimum number of today's segments to merge.
TODAY_LEAST = 48
# Retention removes whole files: a file must be small in relation to the limit.
_PARTS_KEPT = 16
_DAY_S = 86_400.0
# Created by journal/parquet/compact.py.
_LOCK = "_merging.lock"


def target_bytes(keep: Keep) -> int:
    """Return the maximum size of a merged segment."""
    return min(TARGET_BYTES, keep.size_bytes // _PARTS_KEPT) if keep.size_bytes else TARGET_BYTES


def days_due(place: JournalFolder, keep: Keep) -> list[str]:
    """Return the days whose segments should be merged, the oldest first.

    Raises:
        OSError: a file cannot be read.
    """
    if 0 < keep.age_s < 2 * _DAY_S:
        # Retention goes by the newest message of a file: merged, others would stay too long.
        return []
    by_day: dict[Path, list[Segment]] = {}
    for segment in segments_of(place.folder.parent, place.service, place.node):
        if segment.state == "sealed":
            by_day.setdefault(segment.path.parent, []).append(segment)
    today = place.day(day_of(time_ns()))
    small = target_bytes(keep) // 2
    return [
        folder.parent.name.removeprefix("date=")
        for folder, segments in sorted(by_day.items())
        if _has_changed(folder)
        and sum(1 for _ in _joinable(segments, small)) >= (2 if folder < today else TODAY_LEAST)
    ]


def mark_done(place: JournalFolder, day: str) -> None:
    """Skip a day until its folder changes.

    Raises:
        OSError: the time of the lock file cannot be set.
    """
    os.utime(place.day(day) / _LOCK)


def _joinable(segments: list[Segment], small_bytes: int) -> Iterator[Segment]:
    """Return the small segments of a folder that have a small neighbour."""
    small = [each for each in segments if each.path.stat().st_size < small_bytes]
    firsts = {each.first for each in small}
    afters = {each.last + 1 for each in small}
    return (each for each in small if each.first in afters or each.last + 1 in firsts)


def _has_changed(folder: Path) -> bool:
    lock = folder / _LOCK
    return not lock.exists() or lock.stat().st_mtime_ns < folder.stat().st_mtime_ns
