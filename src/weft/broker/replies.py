"""What a gateway says to one peer of its own accord or in answer: OK, ERROR, PONG and the like."""

from weft.broker.delivery.policy import Policy
from weft.broker.service import Peer
from weft.errors import SlowReader, WeftError
from weft.wire.buffer import Writer
from weft.wire.byteops import cut, put_bytes, put_u32, put_u64
from weft.wire.frames import HEADER_BYTES, Flag, Kind, begin_frame, end_frame
from weft.wire.message.codec import put_fields
from weft.wire.message.message import Message
from weft.wire.message.types import Fields, FieldType

TEXT_MAX = 256

_HEADER = HEADER_BYTES
_CUT = int(Policy.CUT)
_MESSAGE = int(Kind.MESSAGE)
_OK = int(Kind.OK)
_ERROR = int(Kind.ERROR)
_ANSWER = int(Flag.ANSWER)
_REQUEST = int(Flag.REQUEST)
_FROM_GATEWAY = int(Flag.FROM_GATEWAY)


def acknowledge(peer: Peer, at: int) -> None:
    """Answer the frame at an offset of the arena with OK, and with the identity of a message."""
    service = peer.service
    arena = service.arena
    length = _HEADER + arena.data[at + 6] + arena.data[at + 7]
    start = arena.reserve(length)
    if start < 0:
        peer.outbox.hold(ok_frame(arena.data, at), service.now_ns)
        return
    put_bytes(arena.data, start, arena.data, at, length)
    _make_ok(arena.data, start, length)
    peer.outbox.push(start, length, _CUT)


def refuse(peer: Peer, at: int, error: WeftError) -> None:
    """Answer the frame at an offset of the arena with an error, and count it."""
    data = peer.service.arena.data
    subject_end = at + _HEADER + data[at + 6]
    subject = cut(data, at + _HEADER, subject_end)
    reply = cut(data, subject_end, subject_end + data[at + 7])
    flags = data[at + 5] & (_ANSWER | _REQUEST)
    peer.service.count_refused(type(error).__name__)
    peer.owe(error_frame(peer, subject, reply, (data[at + 4], flags), error))


def end_with(peer: Peer, error: WeftError) -> None:
    """Tell a peer why its connection ends, and end it."""
    if not peer.is_over:
        peer.service.count_refused(type(error).__name__)
        peer.owe(error_frame(peer, b"", b"", (0, 0), error))
        peer.end(error)


def end_slow_reader(peer: Peer) -> bool:
    """End a peer whose outbox gave it up, and tell it why; False if it cannot be told.

    What it is told comes after the rest of the frame that it has begun to get.
    """
    service = peer.service
    error = SlowReader(f"{peer.name} read too slowly: {peer.outbox.problem()}")
    service.slow_count += 1
    service.slow_example = str(error)
    is_told = peer.outbox.part(error_frame(peer, b"", b"", (0, 0), error))
    peer.end(error)
    return is_told


def error_frame(
    peer: Peer, subject: bytes, reply: bytes, refused: tuple[int, int], error: WeftError
) -> bytes:
    """The frame that says what was wrong with a frame of this kind and with these flags."""
    kind, flags = refused
    fields = Fields(False)
    fields.add("number", FieldType.INT64, error.number)
    fields.add("name", FieldType.STRING, type(error).__name__)
    fields.add("text", FieldType.STRING, str(error)[:TEXT_MAX])
    fields.add("kind", FieldType.INT64, kind)
    writer = peer.service.writer
    start = begin_frame(writer, _ERROR, flags, subject, reply)
    put_fields(writer, fields)
    end_frame(writer, start)
    return writer.take()


def told(peer: Peer, kind: int, subject: bytes, reply: bytes, message: Message) -> bytes:
    """A frame of any kind to one peer, with the gateway's number and the connection's."""
    writer = peer.service.writer
    # Messages alone can come from others, too.
    flags = _FROM_GATEWAY if kind == _MESSAGE else 0
    start = begin_frame(writer, kind, flags, subject, reply)
    put_u32(writer.data, start + 8, peer.service.stamp.origin)
    put_u32(writer.data, start + 12, peer.number & 0xFFFFFFFF)
    message.put(writer)
    end_frame(writer, start)
    return writer.take()


def ok_frame(data: bytearray, at: int) -> bytes:
    """The OK that answers the frame at an offset."""
    length = _HEADER + data[at + 6] + data[at + 7]
    made = bytearray(cut(data, at, at + length))
    _make_ok(made, 0, length)
    return bytes(made)


def put_ok(writer: Writer, data: bytearray, at: int) -> None:
    """Write the OK that answers the frame at an offset."""
    length = _HEADER + data[at + 6] + data[at + 7]
    start = writer.reserve(length)
    put_bytes(writer.data, start, data, at, length)
    _make_ok(writer.data, start, length)


def _make_ok(data: bytearray, at: int, length: int) -> None:
    """Turn a copy of a frame's header and names into the OK that answers it."""
    if data[at + 4] != _MESSAGE:
        # Only what was stamped has an identity; whatever a client wrote there means nothing.
        put_u64(data, at + 8, 0)
        put_u64(data, at + 16, 0)
        put_u64(data, at + 24, 0)
    put_u32(data, at, length)
    data[at + 4] = _OK
    data[at + 5] = _ANSWER
