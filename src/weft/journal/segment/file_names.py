"""File names and paths of a journal.

    service=weather/
        _lock-london                                       locked by the writer
        _open-00000000000000004711-london.weft             being written
        _full-00000000000000000000-00000000000000004710-london.weft
        _torn-00000000000000004711-london-1763286000.weft  cut off after a crash
        date=2026-11-16/node=london/00000000000000000000-00000000000000004710-5d2f0b1c.parquet

Readers of Parquet ignore names that begin with `_`. Names contain the positions, so that a listing
is enough to find a position, and the name of a sealed file contains its checksum.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

# Below the data directory of a gateway.
FOLDER = "journal"

_DIGITS = 20
_OPEN = re.compile(r"_open-(?P<first>\d{20})-(?P<node>[A-Za-z0-9._-]{1,63})\.weft")
_FULL = re.compile(r"_full-(?P<first>\d{20})-(?P<last>\d{20})-(?P<node>[A-Za-z0-9._-]{1,63})\.weft")
_SEALED = re.compile(r"(?P<first>\d{20})-(?P<last>\d{20})-(?P<crc>[0-9a-f]{8})\.parquet")
_SERVICE = re.compile(r"service=(?P<service>[A-Za-z0-9-][A-Za-z0-9_-]{0,62})")
_NODE = re.compile(r"node=(?P<node>[A-Za-z0-9._-]{1,63})")
_DATE = re.compile(r"date=\d{4}-\d{2}-\d{2}")


class Segment(NamedTuple):
    """One file of messages; `last` is -1 while unknown, `crc` is for a sealed one."""

    path: Path
    service: str
    node: str
    state: str
    first: int
    last: int
    crc: int = 0


class JournalFolder:
    """The folder of a service, and the file names of one node in it."""

    def __init__(self, root: Path, service: str, node: str) -> None:
        self.root = root
        self.folder = root / f"service={service}"
        self.service = service
        self.node = node

    @property
    def lock(self) -> Path:
        """The file that the writer locks."""
        return self.folder / f"_lock-{self.node}"

    def open(self, first: int) -> Path:
        """Return the path of a segment that is being written."""
        return self.folder / f"_open-{first:0{_DIGITS}}-{self.node}.weft"

    def full(self, first: int, last: int) -> Path:
        """Return the path of a complete segment."""
        return self.folder / f"_full-{first:0{_DIGITS}}-{last:0{_DIGITS}}-{self.node}.weft"

    def torn(self, first: int, time_ns: int) -> Path:
        """Return the path of the bytes that were cut off a segment after a crash."""
        return self.folder / f"_torn-{first:0{_DIGITS}}-{self.node}-{time_ns}.weft"

    def aside(self, first: int) -> Path:
        """Return the temporary path of a segment that is being sealed."""
        return self.folder / f"_aside-{first:0{_DIGITS}}-{self.node}.parquet"

    def day(self, day: str) -> Path:
        """Return the folder of the sealed segments of one day."""
        return self.folder / f"date={day}" / f"node={self.node}"

    def torn_off(self, first: int) -> list[Path]:
        """Return the paths of all bytes cut off the segment that begins at a position."""
        # The name of another node may begin with this node's name.
        name = re.compile(rf"_torn-{first:0{_DIGITS}}-{re.escape(self.node)}-\d+\.weft")
        return sorted(path for path in self.folder.iterdir() if name.fullmatch(path.name))

    def sealed(self, first: int, last: int, crc: int, time_ns: int) -> Path:
        """Return the path of a sealed segment; its day is that of the first message."""
        name = f"{first:0{_DIGITS}}-{last:0{_DIGITS}}-{crc:08x}.parquet"
        return self.day(day_of(time_ns)) / name


def root_of(folder: Path) -> Path:
    """Return the root of the journals: below a gateway's data directory, or the folder itself."""
    inner = folder / FOLDER
    return inner if inner.is_dir() else folder


def day_of(time_ns: int) -> str:
    """Return the UTC day of a time, as YYYY-MM-DD."""
    return datetime.fromtimestamp(time_ns // 1_000_000_000, UTC).date().isoformat()


def services_in(root: Path) -> list[str]:
    """Return the names of services that have a journal, sorted."""
    if not root.is_dir():
        return []
    found = (_SERVICE.fullmatch(path.name) for path in root.iterdir() if path.is_dir())
    return sorted(match["service"] for match in found if match)


def segments_of(root: Path, service: str, node: str | None = None) -> list[Segment]:
    """Return the segments of a service, of one node or all, by node and first position.

    Files with other names are ignored.
    """
    folder = root / f"service={service}"
    found = list(_segments_in(folder, service)) if folder.is_dir() else []
    chosen = [each for each in found if node is None or each.node == node]
    return sorted(chosen, key=lambda each: (each.node, each.first, each.state))


def segment_at(root: Path, service: str, node: str, name: str) -> Segment | None:
    """Return the segment of a node with this path below its service; None if there is no such file.

    Lists no folder, and never opens names that are not valid for a segment.
    """
    *folders, file = name.split("/")
    path = root / f"service={service}" / name
    found: Segment | None = None
    if not folders and (match := _OPEN.fullmatch(file)):
        found = Segment(path, service, match["node"], "open", int(match["first"]), -1)
    elif not folders and (match := _FULL.fullmatch(file)):
        positions = int(match["first"]), int(match["last"])
        found = Segment(path, service, match["node"], "full", *positions)
    elif len(folders) == 2 and _DATE.fullmatch(folders[0]) and (match := _SEALED.fullmatch(file)):
        numbers = int(match["first"]), int(match["last"]), int(match["crc"], 16)
        named = _NODE.fullmatch(folders[1])
        found = named and Segment(path, service, named["node"], "sealed", *numbers)
    return found if found is not None and found.node == node and path.is_file() else None


def found_again(root: Path, segment: Segment) -> Segment | None:
    """Return the segment that now has the first position of a renamed one, sealed or completed.

    None if it was removed.
    """
    for each in segments_of(root, segment.service, segment.node):
        if each.first <= segment.first <= each.last or each.first == segment.first:
            return each
    return None


def _segments_in(folder: Path, service: str) -> Iterator[Segment]:
    for path in folder.iterdir():
        if match := _OPEN.fullmatch(path.name):
            yield Segment(path, service, match["node"], "open", int(match["first"]), -1)
        elif match := _FULL.fullmatch(path.name):
            first, last = int(match["first"]), int(match["last"])
            yield Segment(path, service, match["node"], "full", first, last)
        elif _DATE.fullmatch(path.name) and path.is_dir():
            yield from _sealed_in(path, service)


def _sealed_in(folder: Path, service: str) -> Iterator[Segment]:
    for place in folder.iterdir():
        node = _NODE.fullmatch(place.name)
        if node is None or not place.is_dir():
            continue
        for path in place.iterdir():
            if match := _SEALED.fullmatch(path.name):
                first, last = int(match["first"]), int(match["last"])
                crc = int(match["crc"], 16)
                yield Segment(path, service, node["node"], "sealed", first, last, crc)
