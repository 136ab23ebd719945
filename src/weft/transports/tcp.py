"""TCP transport: frames over a TCP or Unix socket, as the Python client uses it.

The poller reports readiness and no asyncio transport is involved: bytes are read straight into the
arena, and frames for a slow consumer are queued in its outbox alone.
"""

import os
import socket

from weft.broker.disconnect import leave
from weft.broker.ingest import READ_BYTES
from weft.broker.replies import end_slow_reader
from weft.broker.service import Peer
from weft.errors import WeftError
from weft.transports.loop.poller import READING, WRITING, Poll
from weft.transports.loop.turn import Turn

# Kernel send buffer of a connection; a larger one would only delay the detection of slow consumers.
SEND_BUFFER_BYTES = 1 << 19
# Part of it reserved for the last ERROR to a slow consumer. The kernel overfills a buffer by up to
# 64 KiB.
LAST_WORDS_BYTES = 80 << 10
# TCP_USER_TIMEOUT: how long the kernel waits for acknowledgements or for window space.
UNANSWERED_MS = 12_000

_READ = READ_BYTES
# Full reads of one connection in a row before other connections are served.
_READS = 8
_PIECE = 64 << 10
_AGAIN = -1
_READING = READING
_WRITING = WRITING


class TcpDoor:
    """Connection of one peer; owns the socket."""

    def __init__(self, turn: Turn, poll: Poll, fd: int) -> None:
        self._turn = turn
        self._poll = poll
        self._fd = fd
        self._watched = 0
        self._peer: Peer

    def open(self, token: int) -> Peer:
        """Join the service and start to read.

        Raises:
            OSError: the socket cannot be watched; the caller still owns it.
        """
        self._watch(_READING)
        peer = self._turn.service.join(token, self)
        peer.outbox.fd = self._fd
        self._peer = peer
        return peer

    def happened(self, events: int) -> None:
        """Read and write as the socket is ready; the calls themselves detect a broken one."""
        if self._watched & _READING and events & ~_WRITING:
            self._read()
        if self._watched & _WRITING and events & ~_READING:
            self._write()

    def fall_behind(self) -> None:
        """Send the backlog when the socket has room; a disconnected slow consumer gets an ERROR."""
        peer = self._peer
        if peer.outbox.is_cut and not peer.is_over:
            is_told = end_slow_reader(peer)
            # Another gateway dials again at once and needs no ERROR.
            if peer.carrier is not None or not is_told:
                self.abort()
                return
            self._watch(self._watched | _WRITING)
            self._say_last()
            return
        self._watch(self._watched | _WRITING)

    def press(self) -> None:
        """Send more of the backlog if possible: epoll reports only a large amount of free space."""
        if self._watched & _WRITING:
            self._write()

    def finish(self) -> None:
        """Close once everything is sent; after an error, wait for the peer to read it."""
        if self._fd < 0 or self._watched & _WRITING:
            return
        if self._peer.error is None or not self._watched & _READING:
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

    def give_up(self, error: WeftError) -> None:
        """Close at once because of an error that is not sent to the peer."""
        self._peer.end(error)
        self.abort()

    def abort(self) -> None:
        """Close at once and drop queued frames."""
        fd = self._fd
        if fd < 0:
            return
        self._watch(0)
        self._fd = -1
        os.close(fd)
        leave(self._peer)
        self._turn.left()

    def _read(self) -> None:
        """Read from the socket and handle the frames."""
        for _ in range(_READS):
            count = self._turn.read(self._peer, self._fd)
            # Flush the answer to the last frames of an ended peer before reading anything else.
            if count != _READ or self._peer.is_over or self._is_held():
                break
        if self._is_held():
            self._rest()
        if count == 0:
            # The peer has shut down its sending side, but still receives queued frames.
            self._watch(self._watched & ~_READING)
            self._peer.end(None)
            self._turn.wake()
            if not self._peer.outbox.owed():
                self.finish()
        elif count < _AGAIN:
            self.abort()

    def resume(self) -> None:
        """Resume reading."""
        self._peer.is_held = self._peer.is_paused = False
        self._peer.heard_ns = self._turn.service.now_ns
        if self._fd >= 0 and not self._peer.is_over:
            self._watch(self._watched | _READING)

    def _rest(self) -> None:
        """Pause reading until the journal is written or subscribers have caught up."""
        journal = self._turn.service.router.journal
        if self._fd < 0:
            return
        self._watch(self._watched & ~_READING)
        if self._peer.is_held and journal is not None:
            journal.hold(self)

    def _is_held(self) -> bool:
        return self._peer.is_held or self._peer.is_paused

    def _write(self) -> None:
        """Send more of the backlog."""
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
        self._watch(self._watched & ~_WRITING)
        # Frames of this turn are flushed at its end, which then calls finish().
        if self._peer.is_over and not self._peer.outbox.owed():
            self.finish()

    def _say_last(self) -> None:
        """Send the last ERROR, using the reserved part of the send buffer."""
        try:
            borrowed = socket.socket(fileno=self._fd)
            try:
                borrowed.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
            finally:
                borrowed.detach()
        except OSError:
            self.abort()
            return
        self._write()

    def _watch(self, events: int) -> None:
        if events != self._watched:
            self._poll.watch(self._fd, self, events)
            self._watched = events


def prepare(sock: socket.socket) -> None:
    """Set options on a listening TCP socket that accepted sockets inherit.

    Send buffer size, user timeout, and no delay of small frames (TCP_NODELAY).
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    # Linux reports twice the requested size, and may grant less.
    allowed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, (allowed - LAST_WORDS_BYTES) // 2)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED_MS)
