"""Writer of an open segment: an append-only file of whole batches.

The size counts only whole writes. A failed write is truncated, so that the blocks before it stay
readable. Large batches use direct I/O where the file system supports it.
"""

import contextlib
import errno
import mmap
import os
import secrets
from pathlib import Path
from time import monotonic, time_ns

from weft.broker.journal.batcher import JournalBatch
from weft.journal import file_modes
from weft.journal.segment import direct_io
from weft.journal.segment.blocks import about_block, end_block, filler, filler_size, seal_batch
from weft.journal.segment.file_names import JournalFolder, day_of
from weft.wire.message.message import Message

VERSION = 2
# Ordinarily written bytes after which their page cache is released.
LET_GO_BYTES = 4 << 20

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_SALT_BITS = 64


class OpenSegment:
    """One open segment, from its first position on.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, place: JournalFolder, first: int) -> None:
        self.first = first
        self.next = first
        self.made_ns = time_ns()
        self.day = day_of(self.made_ns)
        self.size = 0
        # Latest time of a message.
        self.latest_ns = 0
        # Bytes since the page cache was released, and whether any may be only in the page cache.
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

    def append(self, batch: JournalBatch) -> None:
        """Write a batch.

        Raises:
            OSError: the batch was not written; a partial write is truncated.
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
        """Sync everything written to the disk.

        Raises:
            OSError: the contents on disk are unknown: the segment must be abandoned.
        """
        os.fdatasync(self._fd)
        self._is_unsynced = False

    def finish(self) -> None:
        """Complete the segment with an end block, and rename it.

        Raises:
            OSError: the segment stays open.
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
        """Close the file as it is; recovery finds its end."""
        for fd in (self._fd, self._direct):
            if fd >= 0:
                os.close(fd)
        self._fd = self._direct = -1

    def _let_go(self) -> None:
        """Start writeback, and release the page cache of the segment.

        The kernel would rather use free memory, and on a virtual machine taking more of it costs
        several times what the write does. This is only advice: sync() alone makes bytes durable.
        """
        self._copied = 0
        # Not the last page, which is still being filled.
        pages = self.size - self.size % mmap.PAGESIZE
        with contextlib.suppress(OSError):
            os.posix_fadvise(self._fd, 0, pages, os.POSIX_FADV_DONTNEED)

    def _append_directly(self, batch: JournalBatch) -> bool:
        """Write a batch with direct I/O; False if that is not possible."""
        end = direct_io.end_on_border(batch, self._salt) if self._direct >= 0 else 0
        if not end:
            return False
        size = filler_size(self.size, direct_io.BORDER_BYTES)
        if size:
            self._write(filler(size, self.next, self._salt))
        if self._is_unsynced:
            # A power cut must not keep this batch and lose earlier bytes.
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
        """Use ordinary writes for the rest of the segment."""
        os.close(self._direct)
        self._direct = -1

    def _write(self, data: bytes | memoryview) -> None:
        self._put(self._fd, data)
        self._copied += len(data)
        self._is_unsynced = True

    def _put(self, fd: int, data: bytes | memoryview) -> None:
        """Append all bytes or none."""
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


def about(place: JournalFolder, first: int, made_ns: int, salt: int) -> bytes:
    """Return the first block of a segment."""
    message = Message(
        version=VERSION, service=place.service, node=place.node, first=first, made=made_ns
    )
    return about_block(message.encode(), first, salt)


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that its file names are durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
