"""Connected socket of the HTTP transports, with a buffer of unsent bytes.

Writers check `has_room` first and wait for `drained()`, so the buffer stays small. While the peer
does not read, nothing is read from it either: otherwise the answers would pile up.
"""

import os
import socket
from typing import Protocol

from weft.errors import WeftError
from weft.transports.loop.poller import READING, WRITING, Poll
from weft.transports.loop.syscalls import peek
from weft.transports.peer_address import peer_address

# Buffered bytes above which `has_room` is false and reading stops.
ROOM_BYTES = 64 << 10

# Handling these bytes is slow compared with frames: other connections should be served in between.
_READ_BYTES = 16 << 10
# Buffer to peek at the next bytes; enough for the first line of a request.
_FIRST = bytearray(256)


class StreamHandler(Protocol):
    """Stream handler: owns a stream and handles its events."""

    def received(self, data: bytes) -> None:
        """Called with received bytes."""

    def ended(self) -> None:
        """Called when the peer has shut down its sending side."""

    def drained(self) -> None:
        """Called when all buffered bytes are sent."""

    def lost(self) -> None:
        """Called once when the stream is closed, by either side."""

    def late(self) -> None:
        """Called at the deadline."""

    def is_ours(self, data: bytes) -> bool:
        """Return whether the next bytes are for this handler; if not, it detached the socket."""


class Silence:
    """Null handler, for a stream that is closed."""

    def received(self, data: bytes) -> None:
        """Do nothing."""

    def ended(self) -> None:
        """Do nothing."""

    def drained(self) -> None:
        """Do nothing."""

    def lost(self) -> None:
        """Do nothing."""

    def late(self) -> None:
        """Do nothing."""

    def is_ours(self, data: bytes) -> bool:  # noqa: ARG002  # an implementation of Talk
        """Return True: a closed stream has no more bytes."""
        return True


_SILENCE = Silence()


class Stream:
    """One socket and its unsent bytes."""

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

    def __init__(self, poll: Poll, fd: int, talk: StreamHandler) -> None:
        """Take over a connected, non-blocking socket, and start to read.

        Raises:
            OSError: the socket cannot be watched; the caller still owns it.
        """
        self._poll = poll
        self._fd = fd
        self._address: str | None = None
        self._watched = 0
        self._pending = b""
        # Since when is_stalled() has seen no progress; 0: the socket has accepted bytes since.
        self._stalled_ns = 0
        self._is_ending = False
        self.talk: StreamHandler = talk
        # Monotonic; 0 for none.
        self.deadline_ns = 0
        self._reads = True
        self._is_looking = False
        self._watch()

    @property
    def address(self) -> str:
        """Return the HOST:PORT of the peer; empty if unknown."""
        if self._address is None:
            self._address = peer_address(self._fd) if self._fd >= 0 else ""
        return self._address

    @property
    def is_open(self) -> bool:
        """Return whether the stream is not closed."""
        return self._fd >= 0

    @property
    def has_room(self) -> bool:
        """Return whether more may be written now."""
        return len(self._pending) < ROOM_BYTES and self.is_open and not self._is_ending

    @property
    def unsent(self) -> int:
        """Return the number of buffered bytes."""
        return len(self._pending)

    def is_stalled(self, oldest_ns: int, now_ns: int) -> bool:
        """Return whether the socket has accepted nothing since a time; the first call starts it."""
        if not self._pending or not self.is_open:
            return False
        self._stalled_ns = self._stalled_ns or now_ns
        return self._stalled_ns < oldest_ns

    def write(self, data: bytes) -> None:
        """Send bytes, after those in the buffer; a closed stream drops them."""
        if not self.is_open or self._is_ending:
            return
        if self._pending:
            self._pending += data
            self._watch()
            return
        self._pending = data
        self._send()

    def look_first(self) -> None:
        """Before the next read, ask the handler's is_ours()."""
        self._is_looking = True
        self._watch()

    def release(self) -> int:
        """Detach the socket and return it; the stream is closed without a callback."""
        fd = self._fd
        self._reads = False
        self._watch()
        self._fd = -1
        self.talk = _SILENCE
        return fd

    def pause(self) -> None:
        """Pause reading."""
        self._reads = False
        self._watch()

    def resume(self) -> None:
        """Resume reading."""
        self._reads = True
        self._watch()

    def end(self) -> None:
        """Flush, shut down the sending side, and wait for the peer to close."""
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
        # No reference may keep the handler alive.
        talk, self.talk = self.talk, _SILENCE
        talk.lost()

    def happened(self, events: int) -> None:
        """Read and write as the socket is ready; the calls themselves detect a broken one."""
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
        """Close at once because of an error in the gateway."""
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
        """Watch the socket for the events that are needed now."""
        # Peek only once the buffer is empty: another process could not send the rest of it.
        room = 1 if self._is_looking else ROOM_BYTES
        reads = self._reads and (len(self._pending) < room or self._is_ending)
        events = (READING if reads else 0) | (WRITING if self._pending else 0)
        if events != self._watched and self._fd >= 0:
            self._poll.watch(self._fd, self, events)
            self._watched = events
