"""Verification of sealed segments: read only if the checksum matches the file name.

Reading a whole file for its checksum costs little compared with decoding it, but not nothing: a
process checks each file once, and the checksums of Parquet's pages on every read.
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

# Checked files that a process remembers.
CHECKED_MAX = 4096

_PIECE_BYTES = 4 << 20
# Errors of a disk that cannot read stored bytes.
_UNREADABLE = (None, errno.EIO, errno.EBADMSG)


class Damaged(WeftError):
    """Sealed segment with a wrong checksum: none of it is read."""


class VerifiedFiles:
    """Sealed segments that this process has verified."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Path, int, int, int], None] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, segment: Segment) -> None:
        """Check that a sealed segment has the checksum in its name.

        Raises:
            Damaged: wrong checksum.
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
                f"{segment.path.name}: its checksum is {crc:08x}, its name has {segment.crc:08x}"
            )
        with self._lock:
            self._known[key] = None
            if len(self._known) > CHECKED_MAX:
                self._known.popitem(last=False)


CHECKED = VerifiedFiles()


@contextmanager
def reading(source: object) -> Iterator[None]:
    """Convert read errors of a damaged disk to Damaged.

    Raises:
        Damaged: the bytes cannot be read.
        OSError: another problem, which may pass.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _UNREADABLE:
            raise
        raise Damaged(f"{source}: {error}") from error


def checksum(path: Path) -> tuple[int, int]:
    """Return the CRC-32C of a file, and its size.

    Raises:
        OSError: unreadable file.
    """
    crc = size = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            crc = crc32c(piece, crc)
            size += len(piece)
    return crc, size
