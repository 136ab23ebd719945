"""When the small sealed segments of a day are worth merging, and into how large ones.

A day that is over is merged as soon as two of its segments can be; of today only many at once, so
that few bytes are written again. Each folder is looked through again only when it has changed: the
lock file of the merge is marked with the time.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from time import time_ns

from weft.journal.retention import Keep
from weft.journal.segment.file_names import Place, Segment, day_of, segments_of

TARGET_BYTES = 128 << 20
# As many segments of today, at least, are merged at once.
TODAY_LEAST = 48
# Retention removes whole files: they must be small beside what is kept.
_PARTS_KEPT = 16
_DAY_S = 86_400.0
# The file is made by journal/parquet/compact.py.
_LOCK = "_merging.lock"


def target_bytes(keep: Keep) -> int:
    """Return how large a merged segment may become."""
    return min(TARGET_BYTES, keep.size_bytes // _PARTS_KEPT) if keep.size_bytes else TARGET_BYTES


def days_due(place: Place, keep: Keep) -> list[str]:
    """Return the days whose segments are to be merged, the oldest first.

    Raises:
        OSError: a file cannot be read.
    """
    if 0 < keep.age_s < 2 * _DAY_S:
        # A file is removed with its newest message: merged, it would stay too long.
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


def mark_done(place: Place, day: str) -> None:
    """Leave a day out until its folder changes.

    Raises:
        OSError: the mark cannot be set.
    """
    os.utime(place.day(day) / _LOCK)


def _joinable(segments: list[Segment], small_bytes: int) -> Iterator[Segment]:
    """The small segments of a folder that have a small one right before or after them."""
    small = [each for each in segments if each.path.stat().st_size < small_bytes]
    firsts = {each.first for each in small}
    afters = {each.last + 1 for each in small}
    return (each for each in small if each.first in afters or each.last + 1 in firsts)


def _has_changed(folder: Path) -> bool:
    lock = folder / _LOCK
    return not lock.exists() or lock.stat().st_mtime_ns < folder.stat().st_mtime_ns
