"""Maintenance of one journal in a process of its own: seal, remove and compact segments.

Started by a gateway whenever a segment is complete: `python -m weft.journal.maintenance ROOT
SERVICE NODE SEAL KEEP_BYTES KEEP_S COMPACT NOW_S`; NOW_S is the current time for retention. Prints
one line per file.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from weft.journal.journal_id import keep_identity
from weft.journal.parquet.compaction_plan import days_due, mark_done, target_bytes
from weft.journal.retention import Keep, expire
from weft.journal.segment.file_names import JournalFolder, segments_of

# Live traffic has priority.
_NICE = 10
# Segments are sealed first; merging stops after this time and continues the next time.
_COMPACT_S = 60.0


def tidied(
    place: JournalFolder, keep: Keep, *, seals: bool, now_s: float | None = None
) -> Iterator[str]:
    """Seal and expire segments; yield a line for each.

    Raises:
        OSError: a file cannot be read, written or removed.
    """
    root, service, node = place.root, place.service, place.node
    segments = segments_of(root, service, node)
    # Before anything is removed: the numbering must continue even if no segment is left.
    if segments:
        keep_identity(place, max(each.last for each in segments) + 1)
    if seals and any(each.state == "full" for each in segments):
        yield from _sealed(root, service, node)
    for segment in expire(root, service, node, keep, now_s):
        yield f"removed {segment.path.name}: positions {segment.first} … {segment.last}"


def compacted(place: JournalFolder, keep: Keep) -> Iterator[str]:
    """Merge small sealed segments; yield a line for each result.

    Raises:
        OSError: a file cannot be read, written or removed.
    """
    days = days_due(place, keep)
    if not days:
        return
    from weft.journal.parquet.compact import Merged, merge_day  # noqa: PLC0415  # needs pyarrow

    ends = monotonic() + _COMPACT_S
    for day in days:
        for made in merge_day(place, day, target_bytes(keep)):
            if isinstance(made, Merged):
                yield f"merged {made.segments} segments as {made.path.name}, {made.size} bytes"
            else:
                yield f"cannot merge {made.path}: {made.why}"
        mark_done(place, day)
        if monotonic() > ends:
            return


def main(arguments: list[str]) -> int:
    """Maintain the journal that the arguments name."""
    os.nice(_NICE)
    root, service, node, seal, keep_bytes, keep_s, compact, now_s = arguments
    keep = Keep(int(keep_bytes), float(keep_s))
    place = JournalFolder(Path(root), service, node)
    seals = seal == "parquet"
    for line in tidied(place, keep, seals=seals, now_s=float(now_s)):
        print(line, flush=True)
    if seals and compact == "days":
        for line in compacted(place, keep):
            print(line, flush=True)
    return 0


def _sealed(root: Path, service: str, node: str) -> Iterator[str]:
    from weft.journal.parquet.seal import Sealed, seal_all  # noqa: PLC0415  # needs pyarrow

    for made in seal_all(root, service, node):
        if isinstance(made, Sealed):
            yield f"sealed {made.messages} messages as {made.path.name}, {made.size} bytes"
        else:
            yield f"cannot seal {made.path}: {made.why}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
