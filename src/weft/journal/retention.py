"""Retention: removes the oldest segments of a journal by age and size.

The open segment always stays.
"""

from pathlib import Path
from time import time
from typing import NamedTuple

from weft.journal.segment.file_names import Segment, segments_of


class Keep(NamedTuple):
    """Limits of one node's journal; 0 means unlimited."""

    size_bytes: int = 0
    age_s: float = 0.0


def newest_s(root: Path, service: str, node: str) -> float | None:
    """Return the wall-clock time of the last write; None if the journal is empty."""
    return max(
        (each.path.stat().st_mtime for each in segments_of(root, service, node)), default=None
    )


def expire(
    root: Path, service: str, node: str, keep: Keep, now_s: float | None = None
) -> list[Segment]:
    """Remove the segments that exceed the limits, and return them.

    `now_s` is the current time; the wall clock by default.

    Raises:
        OSError: a segment cannot be removed.
    """
    now_s = time() if now_s is None else now_s
    found = segments_of(root, service, node)
    sizes = {each: each.path.stat() for each in found}
    total = sum(status.st_size for status in sizes.values())
    removed: list[Segment] = []
    for segment in found:
        status = sizes[segment]
        # The modification time is about that of the last message.
        is_old = bool(keep.age_s) and now_s - status.st_mtime > keep.age_s
        is_much = bool(keep.size_bytes) and total > keep.size_bytes
        if segment.state == "open" or not (is_old or is_much):
            break
        segment.path.unlink()
        total -= status.st_size
        removed.append(segment)
    return removed
