"""Frames: encoding, and decoding from a byte stream that is split anywhere.

A frame is a 32-byte header, subject, reply subject and body. Every length is checked before it is
used. A frame over the limit is refused on its first four bytes, before memory is allocated for it.
Whole frames before an invalid one are always returned first, however the bytes were split.
"""

from enum import IntEnum, IntFlag
from typing import NamedTuple

from weft.errors import BadFrame, FrameTooBig
from weft.wire.buffer import Writer
from weft.wire.byteops import (
    Bytes,
    cut,
    i64_at,
    put_bytes,
    put_i64,
    put_u32,
    put_u64,
    same_bytes,
    u32_at,
    u64_at,
)

# Version of the client protocol.
PROTOCOL_VERSION = 1

HEADER_BYTES = 32
NAME_MAX_BYTES = 255
BODY_LIMIT_BYTES = 1 << 20
# The size of a frame is a u32, which must also hold the header and both names.
BODY_LIMIT_MAX_BYTES = (1 << 31) - 1

# Capacity of a new decoder, and the most that it keeps between two feeds.
_ROOM_FIRST = 4 << 10
_ROOM_KEPT = 1 << 20
_HEADER = HEADER_BYTES
_SIZE_MAX = BODY_LIMIT_MAX_BYTES + HEADER_BYTES + 2 * NAME_MAX_BYTES
_NAME_MAX = NAME_MAX_BYTES


class Kind(IntEnum):
    """Type of a frame."""

    CONNECT = 1
    WELCOME = 2
    SUBSCRIBE = 3
    UNSUBSCRIBE = 4
    MESSAGE = 5
    OK = 6
    ERROR = 7
    PING = 8
    PONG = 9
    GAP = 10
    GOODBYE = 11
    LINK = 12  # handshake of another gateway
    FORWARD = 13  # destination gateways of the frames that follow
    FABRIC = 14  # control messages between gateways
    LANE = 15  # control messages about lanes, and on them
    TAIL = 16  # a message a lane did not deliver, relayed by the gateway


class Flag(IntFlag):
    """Options of a frame; the bits of its flags byte."""

    NONE = 0
    ANSWER = 1  # acknowledge with OK or ERROR
    REQUEST = 2  # deliver to one responder; ERROR if there is none
    NOT_BACK = 4  # no echo: do not deliver to the sending connection
    BARE = 8  # the body is bare bytes, one unnamed blob
    MASKED = 16  # the reply subject is an alias
    FAILED = 32  # the reply reports that the request failed
    FROM_GATEWAY = 64  # the gateway sent the reply; refused from clients


# Bits that a client may not set in a message.
RESERVED_FLAGS = 0xC0


class Frame(NamedTuple):
    """One decoded frame, for tests, tools and control messages; not for the hot path."""

    kind: int
    flags: int
    subject: bytes
    reply: bytes
    body: bytes
    origin: int = 0
    publisher: int = 0
    sequence: int = 0
    time_ns: int = 0


class Stamp:
    """Header fields that a gateway sets on inbound frames; `sequence` is that of the next one."""

    def __init__(
        self, origin: int, publisher: int = 0, sequence: int = 0, time_ns: int = 0
    ) -> None:
        self.origin = origin
        self.publisher = publisher
        self.sequence = sequence
        self.time_ns = time_ns


class Run:
    """Consecutive whole frames of one buffer that share kind, flags and subject.

    A gateway looks up permissions, route and meter once per run and stamps each frame in place.
    `start`, `end` and `count` locate the run; `need` is the size of the incomplete frame after it,
    or 0 if unknown. `has_reply` is True if any of its frames has a reply subject.
    """

    def __init__(self, body_limit_bytes: int = BODY_LIMIT_BYTES) -> None:
        if not 0 <= body_limit_bytes <= BODY_LIMIT_MAX_BYTES:
            raise ValueError(
                f"body limit of {body_limit_bytes} bytes is not in 0 … {BODY_LIMIT_MAX_BYTES}"
            )
        self.body_limit = body_limit_bytes
        self.start = 0
        self.end = 0
        self.count = 0
        self.need = 0
        self.kind = 0
        self.flags = 0
        self.subject_length = 0
        self.has_reply = False

    def read(self, data: Bytes, at: int, end: int) -> bool:
        """Find the run that begins at an offset; return False if no whole frame begins there.

        The buffer holds at least `end` bytes: none after them are read.

        Raises:
            BadFrame: invalid frame at the offset; FrameTooBig if it is over the limit.
        """
        if at < 0:
            raise ValueError(f"a run cannot begin at {at}")
        size_limit = self.body_limit + _HEADER + 2 * _NAME_MAX
        self.start = at
        self.count = 0
        self.need = 0
        self.has_reply = False
        while end - at >= 4:
            size = u32_at(data, at)
            if size < _HEADER or size > size_limit:
                break
            if size > end - at:
                self.need = size
                break
            names = data[at + 6] + data[at + 7]
            if names > size - _HEADER or size - _HEADER - names > self.body_limit:
                break
            if self.count == 0:
                self.kind = data[at + 4]
                self.flags = data[at + 5]
                self.subject_length = data[at + 6]
            elif not (
                # Kind, flags and subject length are adjacent; the reply may differ.
                same_bytes(data, at + 4, data, self.start + 4, 3)
                and same_bytes(data, at + _HEADER, data, self.start + _HEADER, self.subject_length)
            ):
                break
            if data[at + 7] != 0:
                self.has_reply = True
            self.count += 1
            at += size
        self.end = at
        if self.count == 0 and self.need == 0 and end - at >= 4:
            self._refuse(data, at)
        return self.count > 0

    def subject(self, data: Bytes) -> bytes:
        """The subject that the frames of this run share."""
        start = self.start + _HEADER
        return cut(data, start, start + self.subject_length)

    def stamp(self, data: bytearray, stamp: Stamp) -> None:
        """Write origin, publisher, sequence and time into each frame of the run, in place."""
        at = self.start
        for _ in range(self.count):
            stamp_frame(data, at, stamp)
            at += u32_at(data, at)

    def _refuse(self, data: Bytes, at: int) -> None:
        size = u32_at(data, at)
        if size < _HEADER:
            raise BadFrame(f"frame size of {size} bytes is under the header's {_HEADER}")
        size_limit = self.body_limit + _HEADER + 2 * _NAME_MAX
        if size > size_limit:
            raise FrameTooBig(f"frame of {size} bytes is over the limit of {size_limit}")
        names = data[at + 6] + data[at + 7]
        if names > size - _HEADER:
            raise BadFrame(f"subject and reply of {names} bytes exceed a frame of {size}")
        raise FrameTooBig(
            f"body of {size - _HEADER - names} bytes is over the limit of {self.body_limit}"
        )


class Decoder:
    """Splits a byte stream into whole frames: feed() bytes, then next_frame() until None.

    next_run() returns the same frames in batches, until the batch is empty.
    """

    def __init__(self, body_limit_bytes: int = BODY_LIMIT_BYTES) -> None:
        self._run = Run(body_limit_bytes)
        # Fed and not yet returned: `_buffer[_at:_end]`; the rest is capacity for later feeds.
        self._buffer = bytearray()
        self._at = 0
        self._end = 0
        self._run_end = 0

    def feed(self, data: bytes | memoryview) -> None:
        """Append received bytes; they are copied."""
        left = self._end - self._at
        need = left + len(data)
        room = len(self._buffer)
        if need > room or (left == 0 and room > _ROOM_KEPT):
            # Doubles: a large frame may arrive in very small pieces.
            room = max(need, _ROOM_FIRST, 2 * room if left > 0 else 0)
            self._buffer = self._buffer[self._at : self._end] + bytes(room - left)
        elif self._at > 0:
            put_bytes(self._buffer, 0, cut(self._buffer, self._at, self._end), 0, left)
        memoryview(self._buffer)[left:need] = data
        self._run_end -= self._at
        self._at = 0
        self._end = need

    def next_frame(self) -> bytes | None:
        """The next whole frame, or None until more bytes are fed.

        Raises:
                BadFrame: the stream is invalid here; every later call raises, too.
        """
        if self._at == self._run_end:
            if not self._run.read(self._buffer, self._at, self._end):
                return None
            self._run_end = self._run.end
        start = self._at
        self._at = start + u32_at(self._buffer, start)
        return cut(self._buffer, start, self._at)

    def next_run(self) -> list[bytes]:
        """The next whole frames that share kind, flags and subject; empty until more are fed.

        Raises:
            BadFrame: see next_frame().
        """
        frames: list[bytes] = []
        frame = self.next_frame()
        if frame is not None:
            frames.append(frame)
            data = self._buffer
            at = self._at
            while at < self._run_end:
                end = at + u32_at(data, at)
                frames.append(cut(data, at, end))
                at = end
            self._at = at
        return frames


def encode(
    kind: int, subject: bytes = b"", body: bytes = b"", reply: bytes = b"", flags: int = 0
) -> bytes:
    """Encode a frame as a client sends it: origin, publisher, sequence and time are zero.

    Raises:
        BadFrame: subject or reply is over 255 bytes.
    """
    writer = Writer()
    start = begin_frame(writer, kind, flags, subject, reply)
    writer.put(body)
    end_frame(writer, start)
    return writer.take()


def begin_frame(writer: Writer, kind: int, flags: int, subject: bytes, reply: bytes) -> int:
    """Write header and names; then append the body and call end_frame() with the offset returned.

    Raises:
        BadFrame: subject or reply is over 255 bytes.
    """
    subject_length = len(subject)
    reply_length = len(reply)
    if not (0 <= kind <= 255 and 0 <= flags <= 255):
        raise BadFrame(f"kind {kind} and flags {flags}: each is one byte")
    if subject_length > _NAME_MAX or reply_length > _NAME_MAX:
        raise BadFrame(
            f"subject of {subject_length} and reply of {reply_length} bytes:"
            f" the limit of each is {_NAME_MAX}"
        )
    start = writer.reserve(_HEADER + subject_length + reply_length)
    data = writer.data
    data[start + 4] = kind
    data[start + 5] = flags
    data[start + 6] = subject_length
    data[start + 7] = reply_length
    put_u64(data, start + 8, 0)
    put_u64(data, start + 16, 0)
    put_u64(data, start + 24, 0)
    put_bytes(data, start + _HEADER, subject, 0, subject_length)
    put_bytes(data, start + _HEADER + subject_length, reply, 0, reply_length)
    return start


def end_frame(writer: Writer, start: int) -> None:
    """Set the size of the frame that began at `start`, after its body is complete.

    Raises:
        BadFrame: no frame began there, or it is over the maximum size.
    """
    size = writer.size - start
    if start < 0 or size < _HEADER or size > _SIZE_MAX:
        raise BadFrame(f"{size} bytes from {start} on are not a frame")
    put_u32(writer.data, start, size)


def stamp_frame(data: bytearray, at: int, stamp: Stamp) -> None:
    """Write origin, publisher, sequence and time into the frame at an offset, in place."""
    put_u32(data, at + 8, stamp.origin)
    put_u32(data, at + 12, stamp.publisher)
    put_u64(data, at + 16, stamp.sequence)
    put_i64(data, at + 24, stamp.time_ns)
    stamp.sequence += 1


def check_whole(frame: bytes) -> None:
    """Check that the bytes are exactly one frame, so that its parts can be read unchecked.

    Raises:
        BadFrame: missing or surplus bytes, or the names are longer than the frame.
    """
    length = len(frame)
    data = frame
    if length < _HEADER or u32_at(data, 0) != length or data[6] + data[7] > length - _HEADER:
        raise BadFrame(f"{length} bytes are not one whole frame")


def parse(frame: bytes) -> Frame:
    """Decode one whole frame, as a decoder returns it.

    Raises:
        BadFrame: not one whole frame.
    """
    check_whole(frame)
    subject_end = HEADER_BYTES + frame[6]
    reply_end = subject_end + frame[7]
    # Positional: keywords take twice as long, for every frame other than MESSAGE.
    return Frame(
        frame[4],
        frame[5],
        frame[HEADER_BYTES:subject_end],
        frame[subject_end:reply_end],
        frame[reply_end:],
        u32_at(frame, 8),
        u32_at(frame, 12),
        u64_at(frame, 16),
        i64_at(frame, 24),
    )
