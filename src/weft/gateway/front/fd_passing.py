"""Connected sockets, passed from the front to a worker in batches.

They travel over a pair of Unix sockets that keeps messages apart. The front holds both ends for as
long as the service exists: what a worker did not receive outlives it and waits for the next one.
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

# Few enough that receiving them does not hold up the worker's other connections.
BATCH_MAX = 64
# How many may wait in the front, beyond what the kernel holds.
WAITING_MAX = 1024

# Room for some dozens of batches: more would only hide a worker that does not keep up.
_SEND_BUFFER_BYTES = 16 << 10
_RETRY_S = 0.05
# How a socket speaks, as far as the front has seen.
AS_FRAMES = 0
AS_HTTP = 1
# Frames of another gateway.
AS_LINK = 2

# A descriptor, and how it speaks.
Passed = tuple[int, int]

_ATTACHED_BYTES = socket.CMSG_SPACE(BATCH_MAX * array.array("i").itemsize)


class Outgoing:
    """The front's side: what is to go to one worker."""

    def __init__(self, on_return: Callable[[int], None] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        self._near.setblocking(False)
        self.far.setblocking(False)
        self._waiting: deque[Passed] = deque()
        self._flush_at: asyncio.Handle | None = None
        self._is_full = False
        # How many were sent to the worker that is running, or about to.
        self.sent = 0
        self._on_return = on_return
        if on_return is not None:
            self._loop.add_reader(self._near, self._take_returned)

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, fd: int, way: int = AS_FRAMES) -> None:
        """Send a socket, with whatever else comes in this turn of the loop; it is ours from now on.

        Raises:
            Overloaded: as many as allowed are waiting; the descriptor stays the caller's.
        """
        if len(self._waiting) >= WAITING_MAX:
            raise Overloaded(f"{WAITING_MAX} connections wait for the service's worker already")
        self._waiting.append((fd, way))
        if self._flush_at is None and not self._is_full:
            self._flush_at = self._loop.call_soon(self._flush)

    def take_back(self) -> None:
        """Put what the last worker did not receive back in front of what waits."""
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
            _log.error("%s connections were lost: no descriptors are left", lost)
        self.sent = 0
        if self._waiting and self._flush_at is None and not self._is_full:
            self._flush_at = self._loop.call_soon(self._flush)

    def take_all(self) -> list[Passed]:
        """Everything that waits, no longer ours."""
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting

    def close(self) -> None:
        """Close both ends and everything that waits."""
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
        """Take what the worker has sent back: its next request is for somebody else."""
        try:
            batch, lost = receive(self._near)
        except BlockingIOError:
            return
        if lost:
            _log.error("%s connections were lost: no descriptors are left", lost)
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
                # Too many descriptors of this user are on their way; nothing tells when fewer are.
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
    """Send a socket back to the front; where that does not keep up, it is closed instead."""
    try:
        socket.send_fds(sock, [bytes([AS_HTTP])], [fd])
    except OSError as error:
        _log.warning("a connection for another service is closed: %s", error.strerror)
    os.close(fd)


def receive(sock: socket.socket) -> tuple[list[Passed], int]:
    """One batch of sockets, and how many were lost for want of descriptors.

    They are non-blocking if they were so where they came from.

    Raises:
        BlockingIOError: nothing is there at the moment.
        EOFError: the other end is closed.
    """
    # Not socket.recv_fds: it takes no heed of its flags, and programs we start would inherit these.
    ways, attached, _, _ = sock.recvmsg(BATCH_MAX, _ATTACHED_BYTES, socket.MSG_CMSG_CLOEXEC)
    if not ways:
        raise EOFError("no more sockets will come")
    batch = array.array("i", b"".join(data for _, _, data in attached)).tolist()
    # Those that are lost are the last.
    return list(zip(batch, ways, strict=False)), len(ways) - len(batch)
