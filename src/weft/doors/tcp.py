"""Native frames over a TCP or Unix socket: the door that Python clients come in by.

The loop only says when a socket can be read or written; no transport stands in between, so what is
read lands in the arena at once, and what is held for a slow reader is held in its outbox alone.
"""

import os
import socket
from asyncio import AbstractEventLoop

from weft.core.departure import leave
from weft.core.intake import READ_BYTES
from weft.core.service import Peer
from weft.doors.turn import Turn
from weft.errors import SlowReader

# What the kernel may hold for a reader beside its outbox; more would only hide that it is slow.
SEND_BUFFER_BYTES = 1 << 20
# How long the kernel waits for a peer that acknowledges nothing, or has no room.
UNANSWERED_MS = 12_000

_READ = READ_BYTES
# As many full reads may follow each other before the others get their turn.
_READS = 8
_PIECE = 64 << 10
_AGAIN = -1


class TcpDoor:
    """One connection: it owns the socket, and is the door of one peer."""

    def __init__(self, turn: Turn, loop: AbstractEventLoop, fd: int) -> None:
        self._turn = turn
        self._loop = loop
        self._fd = fd
        self._is_writing = False
        self._peer: Peer

    def open(self, token: int) -> Peer:
        """Take a seat in the service and begin to read."""
        peer = self._turn.service.join(token, self)
        peer.outbox.fd = self._fd
        self._peer = peer
        self._loop.add_reader(self._fd, self.readable)
        return peer

    def readable(self) -> None:
        """Read and deal with what came; the loop calls this."""
        for _ in range(_READS):
            count = self._turn.read(self._peer, self._fd)
            if count != _READ or self._fd < 0:
                break
        if count == 0:
            # It sends nothing more, but still gets what it is owed.
            self._loop.remove_reader(self._fd)
            self._peer.end(None)
            self._turn.wake()
            if self._peer.error is not None:
                self.abort()
        elif count < _AGAIN:
            self.abort()

    def writable(self) -> None:
        """Send more of the backlog; the loop calls this while there is one."""
        outbox = self._peer.outbox
        try:
            while outbox.is_behind():
                piece = outbox.take(_PIECE, self._turn.service.now_ns)
                count = os.write(self._fd, piece)
                outbox.taken(count)
                self._turn.service.bytes_out += count
                if count < len(piece):
                    return
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.abort()
            return
        self._loop.remove_writer(self._fd)
        self._is_writing = False
        if self._peer.is_over:
            self.finish()

    def look(self) -> None:
        """Read without being called: a loop may no longer watch a socket that broke."""
        if self._fd >= 0:
            self.readable()

    def fall_behind(self) -> None:
        """Send the backlog when the socket has room; give up on a reader that is cut."""
        if self._peer.outbox.is_cut:
            self._peer.end(SlowReader(f"{self._peer.name} did not read what it was sent"))
            self.abort()
        elif not self._is_writing:
            self._is_writing = True
            # A loop may no longer watch a socket that broke: only writing to it tells.
            self.writable()
            if self._is_writing and self._fd >= 0:
                self._loop.add_writer(self._fd, self.writable)

    def finish(self) -> None:
        """Close once everything owed was sent; after an error, wait for the peer to read of it."""
        if self._fd < 0 or self._is_writing:
            return
        if self._peer.error is None:
            self.abort()
            return
        try:
            borrowed = socket.socket(fileno=self._fd)
            try:
                borrowed.shutdown(socket.SHUT_WR)
            finally:
                borrowed.detach()
        except OSError:
            self.abort()

    def abort(self) -> None:
        """Close at once, whatever is owed."""
        fd = self._fd
        if fd < 0:
            return
        self._fd = -1
        self._loop.remove_reader(fd)
        if self._is_writing:
            self._loop.remove_writer(fd)
        os.close(fd)
        leave(self._peer)
        self._turn.left()


def prepare(sock: socket.socket) -> None:
    """Set, on a listening TCP socket, what those it accepts inherit.

    How much the kernel may buffer for a connection, how long it waits for it, and that small frames
    do not wait for an acknowledgement.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED_MS)
