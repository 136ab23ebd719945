"""A connected socket as the doors for HTTP use it: read when it can be, written as it has room.

What the socket does not take at once is kept here; whoever writes asks `has_room` first and waits
for `drained()`, so that little of it ever is. Who does not take what it is sent is not read from
either: otherwise what answers it would pile up.
"""

import os
import socket
from typing import Protocol

from weft.errors import WeftError
from weft.transports.loop.poller import READING, WRITING, Poll
from weft.transports.loop.syscalls import peek
from weft.transports.peer_address import peer_address

# Beyond this nothing more should be written until the socket has taken some of it.
ROOM_BYTES = 64 << 10

# What is made of it takes long, compared with frames: others should get their turn.
_READ_BYTES = 16 << 10
# Where the beginning of what comes next is looked at; enough for the first line of a request.
_FIRST = bytearray(256)


class Talk(Protocol):
    """Whoever speaks on a stream."""

    def received(self, data: bytes) -> None:
        """Bytes came."""

    def ended(self) -> None:
        """Nothing more will come."""

    def drained(self) -> None:
        """Everything written is on its way."""

    def lost(self) -> None:
        """The stream is closed, whoever closed it; said once."""

    def late(self) -> None:
        """The deadline is over."""

    def is_ours(self, data: bytes) -> bool:
        """Say if what comes next is for this one to read; if not, it has released the stream."""


class Silence:
    """Whoever speaks on a stream that is closed."""

    def received(self, data: bytes) -> None:
        """Nothing comes."""

    def ended(self) -> None:
        """It did."""

    def drained(self) -> None:
        """It never is."""

    def lost(self) -> None:
        """It was."""

    def late(self) -> None:
        """Nothing is waited for."""

    def is_ours(self, data: bytes) -> bool:  # noqa: ARG002  # whatever it is
        """Nothing comes that could be anybody else's."""
        return True


_SILENCE = Silence()


class Stream:
    """One socket, and what it has yet to take."""

    __slots__ = (
        "_address",
        "_fd",
        "_is_ending",
        "_is_looking",
        "_pending",
        "_poll",
        "_reads",
        "_stalled_ns",
        "_watched",
        "deadline_ns",
        "talk",
    )

    def __init__(self, poll: Poll, fd: int, talk: Talk) -> None:
        """Own a connected, non-blocking socket, and begin to read.

        Raises:
            OSError: the socket cannot be watched; it is still the caller's.
        """
        self._poll = poll
        self._fd = fd
        self._address: str | None = None
        self._watched = 0
        self._pending = b""
        # Since when the socket has taken nothing of it, as far as somebody looked; 0: it has.
        self._stalled_ns = 0
        self._is_ending = False
        self.talk: Talk = talk
        # Of the clock that only goes forward; 0 if there is none.
        self.deadline_ns = 0
        self._reads = True
        self._is_looking = False
        self._watch()

    @property
    def address(self) -> str:
        """The HOST:PORT of the other end; empty where that is not known."""
        if self._address is None:
            self._address = peer_address(self._fd) if self._fd >= 0 else ""
        return self._address

    @property
    def is_open(self) -> bool:
        """Say if it is not closed."""
        return self._fd >= 0

    @property
    def has_room(self) -> bool:
        """Say if more may be written now."""
        return len(self._pending) < ROOM_BYTES and self.is_open and not self._is_ending

    @property
    def unsent(self) -> int:
        """How many bytes the socket has yet to take."""
        return len(self._pending)

    def is_stalled(self, oldest_ns: int, now_ns: int) -> bool:
        """Return whether the socket has taken nothing since a time; the first call begins it."""
        if not self._pending or not self.is_open:
            return False
        self._stalled_ns = self._stalled_ns or now_ns
        return self._stalled_ns < oldest_ns

    def write(self, data: bytes) -> None:
        """Send bytes, after those that wait; to a closed stream they are lost."""
        if not self.is_open or self._is_ending:
            return
        if self._pending:
            self._pending += data
            self._watch()
            return
        self._pending = data
        self._send()

    def look_first(self) -> None:
        """Before anything more is read, ask if it is for us to read."""
        self._is_looking = True
        self._watch()

    def release(self) -> int:
        """Give the socket away as it is; the stream is closed, and nobody is told."""
        fd = self._fd
        self._reads = False
        self._watch()
        self._fd = -1
        self.talk = _SILENCE
        return fd

    def pause(self) -> None:
        """Read nothing for now."""
        self._reads = False
        self._watch()

    def resume(self) -> None:
        """Read again."""
        self._reads = True
        self._watch()

    def end(self) -> None:
        """Send what is left, say that nothing follows, and wait for the other side to close."""
        if self.is_open and not self._is_ending:
            self._is_ending = True
            if not self._pending:
                self._shut()

    def close(self) -> None:
        """Close at once."""
        fd = self._fd
        if fd < 0:
            return
        self._pending = b""
        self._reads = False
        self._watch()
        self._fd = -1
        os.close(fd)
        # Nothing that spoke on it may be kept by it.
        talk, self.talk = self.talk, _SILENCE
        talk.lost()

    def happened(self, events: int) -> None:
        """Read and write what the socket is ready for; a broken one tells when it is tried."""
        if self._watched & READING and events & ~WRITING:
            self._read()
        if self._watched & WRITING and events & ~READING:
            self._send()
            if self.is_open and not self._pending:
                if self._is_ending:
                    self._shut()
                else:
                    self.talk.drained()

    def give_up(self, _error: WeftError) -> None:
        """Close at once because of an error of ours."""
        self.close()

    def _read(self) -> None:
        if self._is_looking:
            length = peek(self._fd, _FIRST, len(_FIRST))
            if length > 0 and not self.talk.is_ours(bytes(_FIRST[:length])):
                return
            self._is_looking = False
        try:
            data = os.read(self._fd, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if not data:
            if self._is_ending:
                self.close()
            else:
                self.pause()
                self.talk.ended()
        elif not self._is_ending:
            self.talk.received(data)

    def _send(self) -> None:
        try:
            count = os.write(self._fd, self._pending)
        except (BlockingIOError, InterruptedError):
            count = 0
        except OSError:
            self.close()
            return
        if count > 0:
            self._stalled_ns = 0
        self._pending = self._pending[count:]
        self._watch()

    def _shut(self) -> None:
        borrowed = socket.socket(fileno=self._fd)
        try:
            borrowed.shutdown(socket.SHUT_WR)
        except OSError:
            borrowed.detach()
            self.close()
        else:
            borrowed.detach()
            self.resume()

    def _watch(self) -> None:
        """Have the poll tell of what is waited for now."""
        # Nor is what comes next looked at before all is sent: another could not send the rest.
        room = 1 if self._is_looking else ROOM_BYTES
        reads = self._reads and (len(self._pending) < room or self._is_ending)
        events = (READING if reads else 0) | (WRITING if self._pending else 0)
        if events != self._watched and self._fd >= 0:
            self._poll.watch(self._fd, self, events)
            self._watched = events
