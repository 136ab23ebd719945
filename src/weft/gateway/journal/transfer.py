"""Sending an answer to one reader of a lent journal, who may read slowly or not at all."""

import os
import select
import time
from collections.abc import Callable
from functools import partial
from typing import BinaryIO

# How long a reader may take nothing; and, while others wait for its place, the time in which it
# must take at least this many bytes.
IDLE_S = 30.0
CROWDED_S = 2.0
CROWDED_BYTES = 64 << 10

_LOOK_MS = 250
_PIECE_BYTES = 1 << 20


class Transfer:
    """A non-blocking socket to write to, and the time that its reader has for it."""

    def __init__(self, fd: int, is_crowded: Callable[[], bool]) -> None:
        self._fd = fd
        self._is_crowded = is_crowded
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._moved_s = self._since_s = time.monotonic()
        # What went since then.
        self._bytes = 0

    def send(self, data: bytes) -> None:
        """Send all of some bytes.

        Raises:
            OSError: the reader is gone, or too slow.
        """
        rest = memoryview(data)
        while rest:
            rest = rest[self._moved(partial(os.write, self._fd, rest)) :]

    def send_file(self, file: BinaryIO, start: int, size: int) -> None:
        """Send a part of a file, or what there is of it.

        Raises:
            OSError: the reader is gone, or too slow.
        """
        end = start + size
        while start < end:
            count = min(end - start, _PIECE_BYTES)
            sent = self._moved(partial(os.sendfile, self._fd, file.fileno(), start, count))
            if not sent:
                return
            start += sent

    def _moved(self, act: Callable[[], int]) -> int:
        """Write when there is room; return how much went."""
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
                raise TimeoutError(f"it read nothing for {idle_s:.0f} s")

    def _note(self, count: int) -> None:
        now_s = self._moved_s = time.monotonic()
        self._bytes += count
        if now_s - self._since_s < CROWDED_S:
            return
        read, self._bytes = self._bytes, 0
        self._since_s = now_s
        if read < CROWDED_BYTES and self._is_crowded():
            raise TimeoutError(f"it read {read} bytes in {CROWDED_S:g} s while others waited")
