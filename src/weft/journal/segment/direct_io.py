"""Direct I/O for large writes, past the page cache.

Copying into the page cache, allocating its pages and freeing them costs several times what the disk
needs. In return, the disk requires alignment: a write begins and ends on a border, in the file and
in memory. A batch that does not end on one gets a filler.
"""

import ctypes
import os
from pathlib import Path

from weft.broker.journal.batcher import JournalBatch
from weft.journal.segment.blocks import filler, filler_size

# The largest alignment that a disk or a file system is known to require.
BORDER_BYTES = 4096
# Smaller batches use ordinary writes: the cost of each disk access then outweighs the copy, and a
# filler would be a large part of it.
DIRECT_MIN_BYTES = 512 << 10
# A disk with less than SLOW_BYTES per second, plus PATIENCE_S per write, is slow.
SLOW_BYTES = 200_000_000
PATIENCE_S = 0.01

_FLAGS = os.O_WRONLY | os.O_CLOEXEC | os.O_DIRECT


def opened(path: Path) -> int:
    """Return a descriptor for direct writes to a file; -1 if not supported."""
    try:
        return os.open(path, _FLAGS)
    except OSError:
        return -1


def end_on_border(batch: JournalBatch, salt: int) -> int:
    """Return the end of a batch with a filler behind its blocks; 0 if it must be written normally.

    Direct writes need DIRECT_MIN_BYTES and aligned memory. If only the alignment is wrong, it will
    be right when the batch is reused: its memory does not move once it has grown to the usual size.
    """
    if batch.size < DIRECT_MIN_BYTES:
        return 0
    size = filler_size(batch.size, BORDER_BYTES)
    # Remove the filler of a previous attempt.
    batch.writer.cut_back(batch.end)
    batch.writer.put(filler(size, batch.next_position, salt) if size else b"")
    address = ctypes.addressof(ctypes.c_char.from_buffer(batch.data))
    batch.lead = -address % BORDER_BYTES
    return batch.end + size if batch.start == batch.lead else 0


def is_slow(size_bytes: int, took_s: float) -> bool:
    """Return whether a direct write was so slow that the page cache is better.

    The page cache absorbs bursts, and at such rates the copy costs little.
    """
    return took_s > PATIENCE_S + size_bytes / SLOW_BYTES
