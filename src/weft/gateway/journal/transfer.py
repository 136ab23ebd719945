"""Transfer of a response to one journal reader, with timeouts for slow readers."""

import os
import select
import time
from collections.abc import Callable
from functools import partial
from typing import BinaryIO

# Timeout of a reader that takes nothing; and, while others wait for its slot, the time in which it
# must take at least this many bytes.
IDLE_S = 30.0
CROWDED_S = 2.0
CROWDED_BYTES = 64 << 10

_LOOK_MS = 250
_PIECE_BYTES = 1 << 20


class Transfer:
    """Non-blocking socket to write to, and the timeouts of its reader."""

    def __init__(self, fd: int, is_crowded: Callable[[], bool]) -> None:
        self._fd = fd
        self._is_crowded = is_crowded
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._moved_s = self._since_s = time.monotonic()
        # Bytes sent since then.
        self._bytes = 0

    def send(self, data: bytes) -> None:
        """Send all bytes.

        Raises:
            OSError: The reader has closed the connection, or is too slow.
        """
        rest = memoryview(data)
        while rest:
            rest = rest[self._moved(partial(os.write, self._fd, rest)) :]

    def send_file(self, file: BinaryIO, start: int, size: int) -> None:
        """Send a part of a file, up to its end.

        Raises:
            OSError: The reader has closed the connection, or is too slow.
        """
        end = start + size
        while start < end:
            count = min(end - start, _PIECE_BYTES)
            sent = self._moved(partial(os.sendfile, self._fd, file.fileno(), start, count))
            if not sent:
                return
            start += sent

    def _moved(self, act: Callable[[], int]) -> int:
        """Write when there is space; return the number of bytes written."""
        while True:
            self._wait()
            try:
                count = act()
            except BlockingIOError:
                continue
            self._note(count)
            return count

    def _wait(self) -> None:
        while not self._poll.poll(_LOOK_MS):
            idle_s = time.monotonic() - self._moved_s
            if idle_s >= (CROWDED_S if self._is_crowded() else IDLE_S):
                raise TimeoutError(f"the reader took nothing for {idle_s:.0f} s")

    def _note(self, count: int) -> None:
        now_s = self._moved_s = time.monotonic()
        self._bytes += count
        if now_s - self._since_s < CROWDED_S:
            return
        read, self._bytes = self._bytes, 0
        self._since_s = now_s
        if read < CROWDED_BYTES and self._is_crowded():
            raise TimeoutError(f"the reader took {read} bytes in {CROWDED_S:g} s; others waited")
