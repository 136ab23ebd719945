"""Send buffer of frames, bounded in bytes; any thread puts, the loop's thread takes.

Control frames share the queue, so that a PING follows the messages published before it. They may
exceed the limit by a reserve: a full buffer must not keep a connection from answering.
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
# Size of one write to the socket, give or take a frame; a writer of this size, or a little more, is
# kept for reuse.
CHUNK_BYTES = 48 << 10
_SPARES_MAX = 32

_ANSWER = int(Flag.ANSWER)
_REQUEST = int(Flag.REQUEST)
_BARE = int(Flag.BARE)
_CHUNK = CHUNK_BYTES
_CHANNEL = b"_CHANNEL."

# Writers are reused, so that fast publishers do not allocate memory for every chunk. Shared by all
# connections.
_spare = Spare(_SPARES_MAX)


class SendBuffer:
    """Send buffer of one connection.

    `wake` is called on the thread that puts, when the loop must take frames, and not again until
    it has. `on_drop` is called when the buffer begins to drop messages; `on_ask`, if set, for each
    acknowledged message, just before its frame is written.
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
        # Number of messages that wait for space ahead of the next one; see send_space.py.
        self.queued = 0
        self._limit = limit_bytes
        self._when_full = when_full
        self._wake = wake
        self._on_drop = on_drop
        self._renew_lock()
        # Frames are appended to the writer; full chunks wait in front of it.
        self._writer: Writer = _spare.take()
        self._chunks: deque[Writer] = deque()
        self._held = 0
        self._in_flight = 0
        # Total of bytes taken, and the acknowledged messages that are still here.
        self._passed = 0
        self._pending: deque[Pending] = deque()
        # Number of threads that wait for space.
        self._waiting = 0
        self._is_awake = False
        self._is_dropping = False
        self._refusal = ""

    @property
    def held_bytes(self) -> int:
        """Bytes here or in the socket's buffer."""
        return self._held + self._in_flight

    @property
    def waiting_bytes(self) -> int:
        """Bytes here."""
        return self._held

    @property
    def in_flight_bytes(self) -> int:
        """Bytes taken that may still be in the socket's buffer."""
        return self._in_flight

    @property
    def pending(self) -> int:
        """Number of acknowledged messages here."""
        return len(self._pending)

    def offer(self, frame: bytes) -> bool:
        """Add a frame, or drop it if `when_full` is "drop"; return False if it must wait for space.

        Messages that already wait for space go first.

        Raises:
            Overloaded: No space, and `when_full` is "raise".
            BadField: The frame exceeds the limit of the gateway or of the buffer.
            NotOpen: The connection is closed.
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
        """Add the frame of an acknowledged message; return False if it must wait for space.

        Raises:
            Overloaded: No space, and `when_full` is not "block".
            BadField: The frame exceeds the limit of the gateway or of the buffer.
            NotOpen: The connection is closed.
        """
        if not self.queued and self.put_pending(pending):
            return True
        if self._when_full != "block":
            raise self.is_full()
        return False

    def put_pending(self, pending: Pending) -> bool:
        """Add the frame of an acknowledged message, if there is space; see offer_pending()."""
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
        """Add a frame, if there is space, even ahead of waiting messages; see offer()."""
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
        """Add a message of bytes, if there is space; `opening` has its subject; see offer()."""
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
        """Add a frame; block the calling thread, which is not the loop's, until there is space.

        `pending` is given if the frame is that of an acknowledged message.

        Raises:
            Overloaded: No space within the timeout; for other errors see offer().
        """
        length = len(frame)
        deadline = time.monotonic() + timeout_s
        # Another thread may take the space that this one was woken for.
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
        """Add a control frame.

        Raises:
            Overloaded: The reserve is used up, too, because the gateway does not read.
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
        """Check that a frame can be sent at all.

        Raises:
            BadField: The frame exceeds the limit of the gateway or of the buffer.
        """
        self._refuse_too_long(len(frame), len(frame) - HEADER_BYTES - frame[6] - frame[7])

    def has_room(self, length: int) -> bool:
        """Return whether a frame of this length fits now."""
        # A closed buffer ends the wait: the next offer() then raises NotOpen.
        return bool(self._refusal) or self._held + self._in_flight + length <= self._limit

    def pass_on(self, write: Callable[[memoryview], object]) -> int:
        """Write the next chunk with `write` and return its size; 0 if the buffer is empty.

        The bytes are valid only during the call, but count as held until sent().
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
        """Release the space of sent bytes and wake waiting threads."""
        self._in_flight = 0
        # A thread that begins to wait after this check sees the space before it blocks.
        if self._waiting:
            with self._room:
                self._room.notify_all()

    def lost(self, inbox: bytes) -> list[Pending]:
        """Handle a lost connection: keep only frames that are valid on another one.

        Pending replies have already failed, and an inbox ends with its connection. A channel must
        be joined again first, perhaps with another id: its messages count as dropped. Returns the
        removed messages that await an acknowledgement.
        """
        with self._room:
            lost = self._sift(inbox)
            self._in_flight = 0
            self._is_awake = False
            self._room.notify_all()
        return lost

    def prune(self) -> None:
        """Remove acknowledged messages whose callers gave up before they were sent."""
        with self._room:
            is_awake = self._is_awake
            for pending in self._pending:
                if pending.is_given_up:
                    self._sift(b"")
                    break
            self._is_awake = is_awake

    def take_pending(self) -> list[Pending]:
        """Remove and return the messages that await an acknowledgement and will not be sent."""
        with self._room:
            pending = list(self._pending)
            self._pending = deque()
        return pending

    def close(self) -> None:
        """Refuse new frames and wake waiting threads."""
        with self._room:
            self._refusal = "the connection is closed"
            self._room.notify_all()

    def forked(self, refusal: str) -> None:
        """Disable the buffer in a forked process, where a missing thread may hold the lock."""
        self._renew_lock()
        self._refusal = refusal

    def is_full(self, waited_s: float = 0.0) -> Overloaded:
        """Return the error for a full buffer."""
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
        """Rewrite the frames to keep, in order; return the removed acknowledged messages."""
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
        """Append the frame of an acknowledged message; return whether to wake the loop."""
        self._writer.put(pending.frame)
        must_wake = self._count(len(pending.frame))
        pending.end = self._passed + self._held
        self._pending.append(pending)
        return must_wake

    def _taken_pending(self) -> list[Pending]:
        """Remove and return the acknowledged messages whose frames were taken."""
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
        """Count an appended frame; return whether to wake the loop."""
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
