"""The two system calls of the hot path: between a socket and a stretch of a buffer.

Compiled modules take the C bodies of the same names in kernel.pxd.
"""

import os

NOT_NOW = -1
BROKEN = -2


def send(fd: int, data: bytearray, start: int, length: int) -> int:
    """Send a stretch; return how much of it went, or NOT_NOW, or BROKEN if nothing ever will."""
    try:
        with memoryview(data) as view:
            return os.write(fd, view[start : start + length])
    except (BlockingIOError, InterruptedError):
        return NOT_NOW
    except OSError:
        return BROKEN


def receive(fd: int, data: bytearray, start: int, length: int) -> int:
    """Read into a stretch; return how much came, 0 at the end, NOT_NOW or BROKEN."""
    try:
        with memoryview(data) as view:
            return os.readv(fd, [view[start : start + length]])
    except (BlockingIOError, InterruptedError):
        return NOT_NOW
    except OSError:
        return BROKEN
