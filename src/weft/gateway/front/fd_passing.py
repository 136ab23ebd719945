"""fd passing: sends connected sockets from the front to a worker in batches.

They travel over a pair of Unix sockets that preserves message boundaries. The front keeps both ends
for as long as the service exists: sockets that a worker did not receive wait for the next worker.
"""

import array
import asyncio
import errno
import itertools
import logging
import os
import socket
from collections import deque
from collections.abc import Callable

from weft.errors import Overloaded

_log = logging.getLogger(__name__)

# Small enough that receiving a batch does not delay the worker's other connections.
BATCH_MAX = 64
# Most connections that wait in the front, besides those in the kernel's buffer.
WAITING_MAX = 1024

# Room for some dozens of batches: more would only hide a slow worker.
_SEND_BUFFER_BYTES = 16 << 10
_RETRY_S = 0.05
# Protocol of a socket, as far as the front has seen.
AS_FRAMES = 0
AS_HTTP = 1
# Frames of another gateway's link.
AS_LINK = 2

# A file descriptor, and its protocol.
Passed = tuple[int, int]

_ATTACHED_BYTES = socket.CMSG_SPACE(BATCH_MAX * array.array("i").itemsize)


class FdSender:
    """The front's end: connections to be passed to one worker."""

    def __init__(self, on_return: Callable[[int], None] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        self._near.setblocking(False)
        self.far.setblocking(False)
        self._waiting: deque[Passed] = deque()
        self._flush_at: asyncio.Handle | None = None
        self._is_full = False
        # Number sent to the current worker, or to the next one.
        self.sent = 0
        self._on_return = on_return
        if on_return is not None:
            self._loop.add_reader(self._near, self._take_returned)

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, fd: int, way: int = AS_FRAMES) -> None:
        """Take over a socket and send it, together with others of this turn of the loop.

        Raises:
            Overloaded: WAITING_MAX sockets are waiting; the caller keeps the descriptor.
        """
        if len(self._waiting) >= WAITING_MAX:
            raise Overloaded(f"{WAITING_MAX} connections wait for the service's worker already")
        self._waiting.append((fd, way))
        if self._flush_at is None and not self._is_full:
            self._flush_at = self._loop.call_soon(self._flush)

    def take_back(self) -> None:
        """Put sockets that the last worker did not receive back at the front of the queue."""
        unreceived: list[Passed] = []
        lost = 0
        try:
            while True:
                batch, missing = receive(self.far)
                unreceived += batch
                lost += missing
        except BlockingIOError:
            self._waiting.extendleft(reversed(unreceived))
        if lost:
            _log.error("%s connections were lost: no file descriptors are left", lost)
        self.sent = 0
        if self._waiting and self._flush_at is None and not self._is_full:
            self._flush_at = self._loop.call_soon(self._flush)

    def take_all(self) -> list[Passed]:
        """Remove and return all waiting sockets."""
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting

    def close(self) -> None:
        """Close both ends and all waiting sockets."""
        if self._flush_at is not None:
            self._flush_at.cancel()
        self._stop_waiting()
        for fd, _ in self.take_all():
            os.close(fd)
        if self._on_return is not None:
            self._loop.remove_reader(self._near)
        self._near.close()
        self.far.close()

    def _take_returned(self) -> None:
        """Take sockets that the worker returned: their next request is for another service."""
        try:
            batch, lost = receive(self._near)
        except BlockingIOError:
            return
        if lost:
            _log.error("%s connections were lost: no file descriptors are left", lost)
        for fd, _ in batch:
            if self._on_return is not None:
                self._on_return(fd)

    def _flush(self) -> None:
        if self._flush_at is not None:
            self._flush_at.cancel()
            self._flush_at = None
        while self._waiting:
            batch = list(itertools.islice(self._waiting, BATCH_MAX))
            try:
                ways = bytes([way for _, way in batch])
                socket.send_fds(self._near, [ways], [fd for fd, _ in batch])
            except BlockingIOError:
                self._wait_for_room()
                return
            except OSError as error:
                if error.errno != errno.ETOOMANYREFS:
                    raise
                # Too many descriptors of this user are in flight; no event reports a decrease.
                self._stop_waiting()
                self._flush_at = self._loop.call_later(_RETRY_S, self._flush)
                return
            self.sent += len(batch)
            for fd, _ in batch:
                self._waiting.popleft()
                os.close(fd)
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._is_full:
            self._is_full = False
            self._loop.remove_writer(self._near)

    def _wait_for_room(self) -> None:
        if not self._is_full:
            self._is_full = True
            self._loop.add_writer(self._near, self._flush)


def give_back(sock: socket.socket, fd: int) -> None:
    """Return a socket to the front, or close it if the front does not read."""
    try:
        socket.send_fds(sock, [bytes([AS_HTTP])], [fd])
    except OSError as error:
        _log.warning("closed a connection for another service: %s", error.strerror)
    os.close(fd)


def receive(sock: socket.socket) -> tuple[list[Passed], int]:
    """Return one batch of sockets, and the number lost because descriptors ran out.

    They are non-blocking if they were so before.

    Raises:
        BlockingIOError: No batch is available.
        EOFError: The other end is closed.
    """
    # Not socket.recv_fds: it ignores its flags, and child processes would inherit the sockets.
    ways, attached, _, _ = sock.recvmsg(BATCH_MAX, _ATTACHED_BYTES, socket.MSG_CMSG_CLOEXEC)
    if not ways:
        raise EOFError("the other end is closed")
    batch = array.array("i", b"".join(data for _, _, data in attached)).tolist()
    # The lost ones are the last.
    return list(zip(batch, ways, strict=False)), len(ways) - len(batch)
