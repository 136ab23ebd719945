"""The segment that is being written: a file that only grows, and never holds half of what it says.

Its end counts what was written as a whole. A write that fails is taken back, so that the blocks
before it stay readable. Large batches are written directly, where the file system can do that.
"""

import contextlib
import errno
import mmap
import os
import secrets
from pathlib import Path
from time import monotonic, time_ns

from weft.broker.journal.batcher import Batch
from weft.journal import file_modes
from weft.journal.segment import direct_io
from weft.journal.segment.blocks import about_block, end_block, filler, filler_size, seal_batch
from weft.journal.segment.file_names import Place, day_of
from weft.wire.message.message import Message

VERSION = 2
# When so much more was written the ordinary way, its memory is let go.
LET_GO_BYTES = 4 << 20

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_SALT_BITS = 64


class OpenSegment:
    """One open segment, from its first position on.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, place: Place, first: int) -> None:
        self.first = first
        self.next = first
        self.made_ns = time_ns()
        self.day = day_of(self.made_ns)
        self.size = 0
        # The latest time of a message.
        self.latest_ns = 0
        # Since its memory was let go, and whether any of it may be the system's only.
        self._copied = 0
        self._is_unsynced = False
        self.path = place.open(first)
        self._place = place
        self._salt = secrets.randbits(_SALT_BITS)
        self._fd = os.open(self.path, _FLAGS, file_modes.JOURNAL)
        self._direct = direct_io.opened(self.path)
        try:
            self._write(about(place, first, self.made_ns, self._salt))
            self.sync()
            sync_folder(place.folder)
        except OSError:
            self.abandon()
            raise

    def append(self, batch: Batch) -> None:
        """Write a batch.

        Raises:
            OSError: it was not written, and nothing of it is left in the file.
        """
        seal_batch(batch, self._salt)
        if not self._append_directly(batch):
            with memoryview(batch.data) as data, data[batch.start : batch.end] as blocks:
                self._write(blocks)
        self.next = batch.next_position
        self.latest_ns = max(self.latest_ns, batch.latest_ns)
        if self._copied >= LET_GO_BYTES:
            self._let_go()

    def sync(self) -> None:
        """Return when everything written is on the disk.

        Raises:
            OSError: nobody knows what is: the segment must be abandoned.
        """
        os.fdatasync(self._fd)
        self._is_unsynced = False

    def finish(self) -> None:
        """End the segment: nothing follows.

        Raises:
            OSError: it stays as it is.
        """
        self._write(end_block(self.next, self._salt, self.latest_ns))
        self.sync()
        self.abandon()
        if self.next > self.first:
            self.path.rename(self._place.full(self.first, self.next - 1))
        else:
            self.path.unlink()
        sync_folder(self._place.folder)

    def abandon(self) -> None:
        """Close it as it is; whoever recovers the journal finds its end."""
        for fd in (self._fd, self._direct):
            if fd >= 0:
                os.close(fd)
        self._fd = self._direct = -1

    def _let_go(self) -> None:
        """Have what was written sent to the disk, and the memory that it took used again.

        The system would rather use memory that is free, and where a host lends it, taking it costs
        several times what the write does. It is only advice: what is safe is for sync() to say.
        """
        self._copied = 0
        # Not the last page: it is still being filled.
        pages = self.size - self.size % mmap.PAGESIZE
        with contextlib.suppress(OSError):
            os.posix_fadvise(self._fd, 0, pages, os.POSIX_FADV_DONTNEED)

    def _append_directly(self, batch: Batch) -> bool:
        """Write a batch past the memory of the system; False if that cannot be done."""
        end = direct_io.end_on_border(batch, self._salt) if self._direct >= 0 else 0
        if not end:
            return False
        size = filler_size(self.size, direct_io.BORDER_BYTES)
        if size:
            self._write(filler(size, self.next, self._salt))
        if self._is_unsynced:
            # A power cut must not take what comes before it and leave it.
            self.sync()
        began_s = monotonic()
        try:
            with memoryview(batch.data) as data, data[batch.start : end] as blocks:
                self._put(self._direct, blocks)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._end_directness()
            return False
        if direct_io.is_slow(end - batch.start, monotonic() - began_s):
            self._end_directness()
        return True

    def _end_directness(self) -> None:
        """Write the rest of the segment the ordinary way."""
        os.close(self._direct)
        self._direct = -1

    def _write(self, data: bytes | memoryview) -> None:
        self._put(self._fd, data)
        self._copied += len(data)
        self._is_unsynced = True

    def _put(self, fd: int, data: bytes | memoryview) -> None:
        """Write at the end, everything or nothing."""
        view = memoryview(data)
        done = 0
        try:
            while done < len(view):
                done += os.pwrite(fd, view[done:], self.size + done)
        except OSError:
            if done:
                os.ftruncate(self._fd, self.size)
            raise
        self.size += done


def about(place: Place, first: int, made_ns: int, salt: int) -> bytes:
    """Return the block that a segment begins with."""
    message = Message(
        version=VERSION, service=place.service, node=place.node, first=first, made=made_ns
    )
    return about_block(message.encode(), first, salt)


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
