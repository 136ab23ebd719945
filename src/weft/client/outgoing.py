"""Frames that wait to be sent, bounded in bytes; any thread puts, the loop's thread takes.

Control frames go in the same line, so that a PING comes after what was published before it. They
may go beyond the bound by a reserve: a full buffer must not keep a connection from answering.
"""

import threading
import time
from collections.abc import Callable

from weft.client.options import WhenFull
from weft.core.frames import BODY_LIMIT_BYTES, HEADER_BYTES, Flag, Kind
from weft.errors import BadField, NotOpen, Overloaded

CONTROL_RESERVE_BYTES = 1 << 20
# What is handed to the socket at once, and so the most that is lost with a connection unsent.
CHUNK_BYTES = 256 << 10
# What Python adds to the bytes of a frame, rounded up.
FRAME_COST_BYTES = 64

_ANSWERED = int(Flag.ANSWER | Flag.REQUEST)


class Outgoing:
    """What one connection has yet to send.

    `wake` is called, on the thread that puts, when the loop must come and take; not again until it
    has. `on_drop` is called when the buffer begins to throw away.
    """

    def __init__(
        self,
        limit_bytes: int,
        when_full: WhenFull,
        wake: Callable[[], object],
        on_drop: Callable[[], object],
    ) -> None:
        self.body_limit_bytes = BODY_LIMIT_BYTES
        self.dropped = 0
        self._limit = limit_bytes
        self._when_full = when_full
        self._wake = wake
        self._on_drop = on_drop
        self._room = threading.Condition(threading.Lock())
        self._frames: list[bytes] = []
        self._held = 0
        self._in_flight = 0
        self._is_awake = False
        self._is_dropping = False
        self._refusal = ""

    @property
    def held_bytes(self) -> int:
        """How much waits here or in the socket's own buffer."""
        return self._held + self._in_flight

    @property
    def waiting_bytes(self) -> int:
        """How much waits here."""
        return self._held

    @property
    def in_flight_bytes(self) -> int:
        """How much was taken and may still be in the socket's own buffer."""
        return self._in_flight

    def offer(self, frame: bytes) -> bool:
        """Take a frame, or throw it away if that was chosen; False if it must wait for room.

        Raises:
            Overloaded: there is no room and raising was chosen.
            BadField: it is larger than the gateway or the buffer could ever take.
            NotOpen: the connection is closed.
        """
        if self.put(frame):
            return True
        if self._when_full == "raise":
            raise self.is_full()
        if self._when_full == "block":
            return False
        with self._room:
            self.dropped += 1
            is_first = not self._is_dropping
            self._is_dropping = True
        if is_first:
            self._on_drop()
        return True

    def put(self, frame: bytes) -> bool:
        """Take a frame, if there is room; see offer()."""
        cost = len(frame) + FRAME_COST_BYTES
        if cost > self.body_limit_bytes or cost > self._limit:
            self.check(frame)
        with self._room:
            if self._refusal:
                raise NotOpen(self._refusal)
            if self._held + self._in_flight + cost > self._limit:
                return False
            self._is_dropping = False
            must_wake = self._append(frame, cost)
        if must_wake:
            self._wake()
        return True

    def put_waiting(self, frame: bytes, timeout_s: float) -> None:
        """Take a frame; the calling thread, which is not the loop's, waits for room if it must.

        Raises:
            Overloaded: there was no room in time; otherwise see offer().
        """
        cost = len(frame) + FRAME_COST_BYTES
        deadline = time.monotonic() + timeout_s
        # Another thread may take the room that this one was woken for.
        while not self.offer(frame):
            with self._room:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not self._room.wait_for(lambda: self._has_room(cost), left_s):
                    raise self.is_full(timeout_s)

    def put_control(self, frame: bytes) -> None:
        """Take a frame of the conversation itself.

        Raises:
            Overloaded: even the reserve is used up, because the gateway does not read.
        """
        cost = len(frame) + FRAME_COST_BYTES
        with self._room:
            if self._held + self._in_flight + cost > self._limit + CONTROL_RESERVE_BYTES:
                raise self.is_full()
            must_wake = self._append(frame, cost)
        if must_wake:
            self._wake()

    def check(self, frame: bytes) -> None:
        """Refuse a frame that no amount of waiting would make room for.

        Raises:
            BadField: it is larger than the gateway or the buffer could ever take.
        """
        body = len(frame) - HEADER_BYTES - frame[6] - frame[7]
        if body > self.body_limit_bytes:
            raise BadField(
                f"body of {body} bytes is over the gateway's limit of {self.body_limit_bytes}"
            )
        if len(frame) + FRAME_COST_BYTES > self._limit:
            raise BadField(
                f"frame of {len(frame)} bytes never fits a publish buffer of {self._limit}"
            )

    def has_room(self, size: int) -> bool:
        """Say if a frame of this size could be put now."""
        return self._has_room(size + FRAME_COST_BYTES)

    def take(self) -> bytes:
        """What to send next, in order; until sent() is called it still counts as held."""
        with self._room:
            self._is_awake = False
            if self._held > CHUNK_BYTES:
                return self._take_chunk()
            frames = self._frames
            self._frames = []
            self._in_flight += self._held
            self._held = 0
        return b"".join(frames)

    def sent(self) -> None:
        """What was taken has left; whoever waits for room is woken."""
        with self._room:
            self._in_flight = 0
            self._room.notify_all()

    def lost(self, inbox: bytes) -> None:
        """The connection is gone: keep only what another one can carry.

        Whoever awaited an answer has been told, and an inbox ends with its connection.
        """
        with self._room:
            self._frames = [frame for frame in self._frames if _outlives(frame, inbox)]
            self._held = sum(len(frame) + FRAME_COST_BYTES for frame in self._frames)
            self._in_flight = 0
            self._is_awake = False
            self._room.notify_all()

    def close(self) -> None:
        """Take nothing more; whoever waits for room is told so."""
        with self._room:
            self._refusal = "the connection is closed"
            self._room.notify_all()

    def forked(self, refusal: str) -> None:
        """This process is a copy that nobody sends for; a thread it lacks may have the lock."""
        self._room = threading.Condition(threading.Lock())
        self._refusal = refusal

    def is_full(self, waited_s: float = 0.0) -> Overloaded:
        """The error that says so."""
        after = f" after {waited_s} s" if waited_s else ""
        return Overloaded(
            f"the publish buffer holds {self.held_bytes} of {self._limit} bytes{after}"
        )

    def _append(self, frame: bytes, cost: int) -> bool:
        """Put a frame last; True if the loop must be woken."""
        self._frames.append(frame)
        self._held += cost
        was_awake = self._is_awake
        self._is_awake = True
        return not was_awake

    def _has_room(self, cost: int) -> bool:
        # A closed buffer ends the wait: the next offer() then says that it is closed.
        return bool(self._refusal) or self._held + self._in_flight + cost <= self._limit

    def _take_chunk(self) -> bytes:
        size = 0
        count = 0
        while size < CHUNK_BYTES and count < len(self._frames):
            size += len(self._frames[count]) + FRAME_COST_BYTES
            count += 1
        chunk = self._frames[:count]
        del self._frames[:count]
        self._held -= size
        self._in_flight += size
        return b"".join(chunk)


def _outlives(frame: bytes, inbox: bytes) -> bool:
    if frame[4] != Kind.MESSAGE or frame[5] & _ANSWERED:
        return False
    reply_start = HEADER_BYTES + frame[6]
    return not (inbox and frame[reply_start : reply_start + frame[7]].startswith(inbox))
