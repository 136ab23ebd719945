"""Native frames over a TCP or Unix socket: the door that Python clients come in by.

A poll says when a socket can be read or written; no transport stands in between, so what is read
lands in the arena at once, and what is held for a slow reader is held in its outbox alone.
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

# What the kernel may hold for a reader beside its outbox; more would only hide that it is slow.
SEND_BUFFER_BYTES = 1 << 19
# What of it is kept for the last words to a slow consumer. The kernel overfills a buffer by up to
# 64 KiB.
LAST_WORDS_BYTES = 80 << 10
# How long the kernel waits for a peer that acknowledges nothing, or has no room.
UNANSWERED_MS = 12_000

_READ = READ_BYTES
# As many full reads may follow each other before the others get their turn.
_READS = 8
_PIECE = 64 << 10
_AGAIN = -1
_READING = READING
_WRITING = WRITING


class TcpDoor:
    """One connection: it owns the socket, and is the door of one peer."""

    def __init__(self, turn: Turn, poll: Poll, fd: int) -> None:
        self._turn = turn
        self._poll = poll
        self._fd = fd
        self._watched = 0
        self._peer: Peer

    def open(self, token: int) -> Peer:
        """Take a seat in the service and begin to read.

        Raises:
            OSError: the socket cannot be watched; it is still the caller's.
        """
        self._watch(_READING)
        peer = self._turn.service.join(token, self)
        peer.outbox.fd = self._fd
        self._peer = peer
        return peer

    def happened(self, events: int) -> None:
        """Read and write what the socket is ready for; a broken one tells when it is tried."""
        if self._watched & _READING and events & ~_WRITING:
            self._read()
        if self._watched & _WRITING and events & ~_READING:
            self._write()

    def fall_behind(self) -> None:
        """Send the backlog when the socket has room; a reader that is cut is told so at last."""
        peer = self._peer
        if peer.outbox.is_cut and not peer.is_over:
            is_told = end_slow_reader(peer)
            # Another gateway is dialled again at once: it needs no last words.
            if peer.carrier is not None or not is_told:
                self.abort()
                return
            self._watch(self._watched | _WRITING)
            self._say_last()
            return
        self._watch(self._watched | _WRITING)

    def press(self) -> None:
        """Send more of the backlog if there is any room: the kernel tells only of much room."""
        if self._watched & _WRITING:
            self._write()

    def finish(self) -> None:
        """Close once everything owed was sent; after an error, wait for the peer to read of it."""
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
        """End the connection at once because of an error that its peer is not told."""
        self._peer.end(error)
        self.abort()

    def abort(self) -> None:
        """Close at once, whatever is owed."""
        fd = self._fd
        if fd < 0:
            return
        self._watch(0)
        self._fd = -1
        os.close(fd)
        leave(self._peer)
        self._turn.left()

    def _read(self) -> None:
        """Read and deal with what came."""
        for _ in range(_READS):
            count = self._turn.read(self._peer, self._fd)
            # What answers the last words of one that is over is sent before anything else is read.
            if count != _READ or self._peer.is_over or self._is_held():
                break
        if self._is_held():
            self._rest()
        if count == 0:
            # It sends nothing more, but still gets what it is owed.
            self._watch(self._watched & ~_READING)
            self._peer.end(None)
            self._turn.wake()
            if not self._peer.outbox.owed():
                self.finish()
        elif count < _AGAIN:
            self.abort()

    def resume(self) -> None:
        """Read again."""
        self._peer.is_held = self._peer.is_paused = False
        self._peer.heard_ns = self._turn.service.now_ns
        if self._fd >= 0 and not self._peer.is_over:
            self._watch(self._watched | _READING)

    def _rest(self) -> None:
        """Read nothing until the journal was written, or others have read what this one sent."""
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
        # What is owed in this turn goes at its end, and then this is told to finish.
        if self._peer.is_over and not self._peer.outbox.owed():
            self.finish()

    def _say_last(self) -> None:
        """Write the last words with the room that was kept for them."""
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
    """Set, on a listening TCP socket, what those it accepts inherit.

    How much the kernel may buffer for a connection, how long it waits for it, and that small frames
    do not wait for an acknowledgement.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    # Linux reports twice what is asked for, and may allow less of it.
    allowed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, (allowed - LAST_WORDS_BYTES) // 2)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED_MS)
