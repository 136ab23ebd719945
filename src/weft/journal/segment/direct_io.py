"""Large writes that go from our memory to the disk, past the memory of the system.

To copy what is written into pages of the system, and to find and let go such pages, costs several
times what the disk's own part does. The disk asks for borders in return: a write begins and ends on
one, in the file and in memory. Where a batch does not end on one, a filler does.
"""

import ctypes
import os
from pathlib import Path

from weft.broker.journal.batcher import Batch
from weft.journal.segment.blocks import filler, filler_size

# The largest that a disk or a file system is known to ask for.
BORDER_BYTES = 4096
# What is smaller is written the ordinary way: what the disk costs for each write then outweighs the
# copy, and a filler would be a good part of it.
DIRECT_MIN_BYTES = 512 << 10
# A disk that takes less in a second than this, and this much longer, is slow.
SLOW_BYTES = 200_000_000
PATIENCE_S = 0.01

_FLAGS = os.O_WRONLY | os.O_CLOEXEC | os.O_DIRECT


def opened(path: Path) -> int:
    """A descriptor for direct writes to a file; -1 where there are none."""
    try:
        return os.open(path, _FLAGS)
    except OSError:
        return -1


def end_on_border(batch: Batch, salt: int) -> int:
    """Where a batch ends with a filler behind its blocks; 0 if it cannot be written directly.

    It has to be large enough, and to lie in memory as the disk asks for. If only the latter lacks,
    it will when it is filled again: its memory moves no more once it has grown to what is usual.
    """
    if batch.size < DIRECT_MIN_BYTES:
        return 0
    size = filler_size(batch.size, BORDER_BYTES)
    # There is one already if it was tried before.
    batch.writer.cut_back(batch.end)
    batch.writer.put(filler(size, batch.next_position, salt) if size else b"")
    address = ctypes.addressof(ctypes.c_char.from_buffer(batch.data))
    batch.lead = -address % BORDER_BYTES
    return batch.end + size if batch.start == batch.lead else 0


def is_slow(size_bytes: int, took_s: float) -> bool:
    """Say if a direct write took so long that the memory of the system is the better way.

    It can take a burst that the disk cannot, and at such rates the copy costs little.
    """
    return took_s > PATIENCE_S + size_bytes / SLOW_BYTES
