"""Frames that wait to be sent, bounded in bytes; any thread puts, the loop's thread takes.

Control frames go in the same line, so that a PING comes after what was published before it. They
may go beyond the bound by a reserve: a full buffer must not keep a connection from answering.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from weft.client.options import WhenFull
from weft.client.publish.gil_lock import enter, leave
from weft.client.publish.pending_ack import Pending
from weft.client.sync.interruptible import piece_of
from weft.errors import BadField, NotOpen, Overloaded
from weft.wire.buffer import Spare, Writer
from weft.wire.byteops import put_bytes, put_u32, u32_at
from weft.wire.frames import BODY_LIMIT_BYTES, HEADER_BYTES, Flag, Kind

CONTROL_RESERVE_BYTES = 1 << 20
# What is handed to the socket at once, give or take a frame; a writer that has grown to it, and a
# little beyond, is kept for the next.
CHUNK_BYTES = 48 << 10
_SPARES_MAX = 32

_ANSWER = int(Flag.ANSWER)
_REQUEST = int(Flag.REQUEST)
_BARE = int(Flag.BARE)
_CHUNK = CHUNK_BYTES
_CHANNEL = b"_CHANNEL."

# Whoever publishes much would otherwise have the memory fetched from the system and given back
# again and again. All connections share them.
_spare = Spare(_SPARES_MAX)


class Outgoing:
    """What one connection has yet to send.

    `wake` is called, on the thread that puts, when the loop must come and take; not again until it
    has. `on_drop` is called when the buffer begins to throw away; `on_ask`, if it is set, for each
    message that wants an acknowledgement, just before its frame is written.
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
        self.on_ask: Callable[[Pending], object] | None = None
        # How many messages wait for room in front of whatever is published next; see room.py.
        self.queued = 0
        self._limit = limit_bytes
        self._when_full = when_full
        self._wake = wake
        self._on_drop = on_drop
        self._renew_lock()
        # Written into one after the other; what is a chunk already waits in front of it.
        self._writer: Writer = _spare.take()
        self._chunks: deque[Writer] = deque()
        self._held = 0
        self._in_flight = 0
        # Bytes that were ever taken, and the messages still here that want an acknowledgement.
        self._passed = 0
        self._pending: deque[Pending] = deque()
        # Threads that wait for room.
        self._waiting = 0
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

    @property
    def pending(self) -> int:
        """How many messages here want an acknowledgement."""
        return len(self._pending)

    def offer(self, frame: bytes) -> bool:
        """Take a frame, or throw it away if that was chosen; False if it must wait for room.

        What waits for room already comes first.

        Raises:
            Overloaded: there is no room and raising was chosen.
            BadField: it is larger than the gateway or the buffer could ever take.
            NotOpen: the connection is closed.
        """
        if not self.queued and self.put(frame):
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

    def offer_pending(self, pending: Pending) -> bool:
        """Take the frame of an acknowledged message; False if it must wait for room.

        Raises:
            Overloaded: there is no room, and waiting for it was not chosen.
            BadField: it is larger than the gateway or the buffer could ever take.
            NotOpen: the connection is closed.
        """
        if not self.queued and self.put_pending(pending):
            return True
        if self._when_full != "block":
            raise self.is_full()
        return False

    def put_pending(self, pending: Pending) -> bool:
        """Take the frame of an acknowledged message, if there is room; see offer_pending()."""
        length = len(pending.frame)
        if length > self.body_limit_bytes or length > self._limit:
            self.check(pending.frame)
        with self._room:
            if not self._admits(length):
                return False
            must_wake = self._put_pending(pending)
        if must_wake:
            self._wake()
        return True

    def put(self, frame: bytes) -> bool:
        """Take a frame, if there is room, even before what waits for room; see offer()."""
        length = len(frame)
        if length > self.body_limit_bytes or length > self._limit:
            self.check(frame)
        enter(self._lock)
        try:
            if not self._admits(length):
                return False
            self._writer.put(frame)
            must_wake = self._count(length)
        finally:
            leave(self._lock)
        if must_wake:
            self._wake()
        return True

    def put_bare(self, opening: bytes, flags: int, body: bytes) -> bool:
        """Take a message of bare bytes, if there is room; `opening` says what to; see offer()."""
        start = len(opening)
        length = start + len(body)
        if length > self.body_limit_bytes or length > self._limit:
            self._refuse_too_long(length, length - start)
        if self.queued:
            return False
        enter(self._lock)
        try:
            if not self._admits(length):
                return False
            at = self._writer.reserve(length)
            data = self._writer.data
            put_bytes(data, at, opening, 0, start)
            put_u32(data, at, length)
            data[at + 5] = flags | _BARE
            put_bytes(data, at + start, body, 0, length - start)
            must_wake = self._count(length)
        finally:
            leave(self._lock)
        if must_wake:
            self._wake()
        return True

    def put_waiting(self, frame: bytes, timeout_s: float, pending: Pending | None = None) -> None:
        """Take a frame; the calling thread, which is not the loop's, waits for room if it must.

        `pending` is given if the frame is that of an acknowledged message.

        Raises:
            Overloaded: there was no room in time; otherwise see offer().
        """
        length = len(frame)
        deadline = time.monotonic() + timeout_s
        # Another thread may take the room that this one was woken for.
        while not (self.offer(frame) if pending is None else self.offer_pending(pending)):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise self.is_full(timeout_s)
            with self._room:
                self._waiting += 1
                try:
                    self._room.wait_for(lambda: self.has_room(length), piece_of(left_s))
                finally:
                    self._waiting -= 1

    def put_control(self, frame: bytes) -> None:
        """Take a frame of the conversation itself.

        Raises:
            Overloaded: even the reserve is used up, because the gateway does not read.
        """
        length = len(frame)
        with self._room:
            if self._held + self._in_flight + length > self._limit + CONTROL_RESERVE_BYTES:
                raise self.is_full()
            self._writer.put(frame)
            must_wake = self._count(length)
        if must_wake:
            self._wake()

    def check(self, frame: bytes) -> None:
        """Refuse a frame that no amount of waiting would make room for.

        Raises:
            BadField: it is larger than the gateway or the buffer could ever take.
        """
        self._refuse_too_long(len(frame), len(frame) - HEADER_BYTES - frame[6] - frame[7])

    def has_room(self, length: int) -> bool:
        """Say if a frame of this length could be put now."""
        # A closed buffer ends the wait: the next offer() then says that it is closed.
        return bool(self._refusal) or self._held + self._in_flight + length <= self._limit

    def pass_on(self, write: Callable[[memoryview], object]) -> int:
        """Have what is next to be sent written, and say how many bytes it was; 0 if nothing is.

        It is gone when `write` returns, but counts as held until sent() is called.
        """
        due: list[Pending] | None = None
        enter(self._lock)
        try:
            self._is_awake = False
            if not self._chunks:
                self._end_chunk()
            writer: Writer = self._chunks.popleft()
            size = writer.size
            self._held -= size
            self._in_flight += size
            self._passed += size
            if self._pending:
                due = self._taken_pending()
        finally:
            leave(self._lock)
        if due is not None and self.on_ask is not None:
            for each in due:
                self.on_ask(each)
        if size > 0:
            with memoryview(writer.data) as data, data[:size] as written:
                write(written)
        writer.cut_back(0)
        _spare.give(writer)
        return size

    def sent(self) -> None:
        """What was taken has left; whoever waits for room is woken."""
        self._in_flight = 0
        # Whoever begins to wait after this sees the room before it rests.
        if self._waiting:
            with self._room:
                self._room.notify_all()

    def lost(self, inbox: bytes) -> list[Pending]:
        """The connection is gone: keep only what another one can carry.

        Whoever awaited an answer has been told, and an inbox ends with its connection. A channel
        must be joined first, and may have another id then: what was said in it counts as dropped.
        Returns the messages among these that want an acknowledgement, which none will get.
        """
        with self._room:
            lost = self._sift(inbox)
            self._in_flight = 0
            self._is_awake = False
            self._room.notify_all()
        return lost

    def prune(self) -> None:
        """Take out the acknowledged messages that were given up before they could be sent."""
        with self._room:
            is_awake = self._is_awake
            for pending in self._pending:
                if pending.is_given_up:
                    self._sift(b"")
                    break
            self._is_awake = is_awake

    def take_pending(self) -> list[Pending]:
        """The messages that want an acknowledgement and will never be sent."""
        with self._room:
            pending = list(self._pending)
            self._pending = deque()
        return pending

    def close(self) -> None:
        """Take nothing more; whoever waits for room is told so."""
        with self._room:
            self._refusal = "the connection is closed"
            self._room.notify_all()

    def forked(self, refusal: str) -> None:
        """This process is a copy that nobody sends for; a thread it lacks may have the lock."""
        self._renew_lock()
        self._refusal = refusal

    def is_full(self, waited_s: float = 0.0) -> Overloaded:
        """The error that says so."""
        after = f" after {waited_s} s" if waited_s else ""
        return Overloaded(
            f"the publish buffer holds {self.held_bytes} of {self._limit} bytes{after}"
        )

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)

    def _refuse_too_long(self, length: int, body_length: int) -> None:
        if body_length > self.body_limit_bytes:
            raise BadField(
                f"body of {body_length} bytes is over the gateway's limit of"
                f" {self.body_limit_bytes}"
            )
        if length > self._limit:
            raise BadField(f"frame of {length} bytes never fits a publish buffer of {self._limit}")

    def _sift(self, inbox: bytes) -> list[Pending]:
        """Write again, in order, what is to stay; the pending messages among the rest."""
        self._end_chunk()
        waiting = b"".join([writer.take() for writer in self._chunks])
        self._chunks.clear()
        self._held = 0
        pending: deque[Pending] = self._pending
        self._pending = deque()
        lost: list[Pending] = []
        for frame in _frames_in(waiting):
            is_asking = _is_asking(frame)
            asked = pending.popleft() if is_asking and pending else None
            is_awaited = asked is not None and not asked.is_given_up
            is_kept = _outlives(frame, inbox) and (is_awaited or not is_asking)
            if is_kept and frame.startswith(_CHANNEL, HEADER_BYTES):
                self.dropped += 1
                is_kept = False
            if is_kept and asked is None:
                self._writer.put(frame)
                self._count(len(frame))
            elif is_kept and asked is not None:
                self._put_pending(asked)
            elif asked is not None:
                lost.append(asked)
        return lost

    def _put_pending(self, pending: Pending) -> bool:
        """Write the frame of an acknowledged message; True if the loop must be woken."""
        self._writer.put(pending.frame)
        must_wake = self._count(len(pending.frame))
        pending.end = self._passed + self._held
        self._pending.append(pending)
        return must_wake

    def _taken_pending(self) -> list[Pending]:
        """Those whose frames were taken, no longer here."""
        due: list[Pending] = []
        while self._pending and self._pending[0].end <= self._passed:
            due.append(self._pending.popleft())
        return due

    def _admits(self, length: int) -> bool:
        if self._refusal:
            raise NotOpen(self._refusal)
        if self._held + self._in_flight + length > self._limit:
            return False
        self._is_dropping = False
        return True

    def _count(self, length: int) -> bool:
        """A frame was written; True if the loop must be woken."""
        self._held += length
        if self._writer.size >= _CHUNK:
            self._end_chunk()
        was_awake = self._is_awake
        self._is_awake = True
        return not was_awake

    def _end_chunk(self) -> None:
        self._chunks.append(self._writer)
        self._writer = _spare.take()


def _frames_in(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = at + u32_at(data, at)
        yield data[at:end]
        at = end


def _is_asking(frame: bytes) -> bool:
    return frame[4] == Kind.MESSAGE and frame[5] & (_ANSWER | _REQUEST) == _ANSWER


def _outlives(frame: bytes, inbox: bytes) -> bool:
    if frame[4] != Kind.MESSAGE or frame[5] & _REQUEST:
        return False
    reply_start = HEADER_BYTES + frame[6]
    return not (inbox and frame[reply_start : reply_start + frame[7]].startswith(inbox))
