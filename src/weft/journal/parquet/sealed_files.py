"""Sealed segments are read only if their bytes match the checksum in their names.

To read a whole file for its checksum costs little beside taking it apart, but not nothing: a
process checks each file once, and the checksums of Parquet's pages whenever it reads.
"""

import errno
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crc32c import crc32c

from weft.errors import WeftError
from weft.journal.segment.file_names import Segment

# How many files a process remembers to have checked.
CHECKED_MAX = 4096

_PIECE_BYTES = 4 << 20
# What a disk answers that cannot read what it has.
_UNREADABLE = (None, errno.EIO, errno.EBADMSG)


class Damaged(WeftError):
    """A sealed segment does not hold what was sealed: none of it is read."""


class Checked:
    """The sealed segments that one process has found to be right."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Path, int, int, int], None] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, segment: Segment) -> None:
        """Make sure that a sealed segment has the checksum in its name.

        Raises:
            Damaged: it has another.
            OSError: it cannot be opened.
        """
        status = segment.path.stat()
        key = (segment.path, status.st_ino, status.st_mtime_ns, status.st_size)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return
        with reading(segment.path):
            crc, _ = checksum(segment.path)
        if crc != segment.crc:
            raise Damaged(
                f"{segment.path.name}: its checksum is {crc:08x}, its name says {segment.crc:08x}"
            )
        with self._lock:
            self._known[key] = None
            if len(self._known) > CHECKED_MAX:
                self._known.popitem(last=False)


CHECKED = Checked()


@contextmanager
def reading(source: object) -> Iterator[None]:
    """Raise Damaged for what a disk cannot read of a file.

    Raises:
        Damaged: its bytes are not there.
        OSError: another problem, which may pass.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _UNREADABLE:
            raise
        raise Damaged(f"{source}: {error}") from error


def checksum(path: Path) -> tuple[int, int]:
    """Return the CRC-32C of a file, and how large it is.

    Raises:
        OSError: it cannot be read.
    """
    crc = size = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            crc = crc32c(piece, crc)
            size += len(piece)
    return crc, size
