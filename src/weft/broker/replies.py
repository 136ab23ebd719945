"""Frames that a gateway itself sends to a peer: OK, ERROR, WELCOME and answers."""

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
    """Reply OK to the frame at an offset of the arena, with origin and sequence of a message."""
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
    """Reply with an error to the frame at an offset of the arena, and count it."""
    data = peer.service.arena.data
    subject_end = at + _HEADER + data[at + 6]
    subject = cut(data, at + _HEADER, subject_end)
    reply = cut(data, subject_end, subject_end + data[at + 7])
    flags = data[at + 5] & (_ANSWER | _REQUEST)
    peer.service.count_refused(type(error).__name__)
    peer.owe(error_frame(peer, subject, reply, (data[at + 4], flags), error))


def end_with(peer: Peer, error: WeftError) -> None:
    """Send a peer the error that ends its connection, and end it."""
    if not peer.is_over:
        peer.service.count_refused(type(error).__name__)
        peer.owe(error_frame(peer, b"", b"", (0, 0), error))
        peer.end(error)


def end_slow_reader(peer: Peer) -> bool:
    """Disconnect a slow consumer; return whether the error can be sent to it.

    The error follows the rest of the frame that was partly sent.
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
    """Encode the ERROR frame for a refused frame, given its kind and flags."""
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
    """Encode a frame to one peer with the numbers of the gateway and the connection."""
    writer = peer.service.writer
    # Only messages can come from other senders, too.
    flags = _FROM_GATEWAY if kind == _MESSAGE else 0
    start = begin_frame(writer, kind, flags, subject, reply)
    put_u32(writer.data, start + 8, peer.service.stamp.origin)
    put_u32(writer.data, start + 12, peer.number & 0xFFFFFFFF)
    message.put(writer)
    end_frame(writer, start)
    return writer.take()


def ok_frame(data: bytearray, at: int) -> bytes:
    """Encode the OK for the frame at an offset."""
    length = _HEADER + data[at + 6] + data[at + 7]
    made = bytearray(cut(data, at, at + length))
    _make_ok(made, 0, length)
    return bytes(made)


def put_ok(writer: Writer, data: bytearray, at: int) -> None:
    """Append the OK for the frame at an offset."""
    length = _HEADER + data[at + 6] + data[at + 7]
    start = writer.reserve(length)
    put_bytes(writer.data, start, data, at, length)
    _make_ok(writer.data, start, length)


def _make_ok(data: bytearray, at: int, length: int) -> None:
    """Turn a copy of a frame's header and names into its OK."""
    if data[at + 4] != _MESSAGE:
        # Only messages are stamped; in other frames these are a client's bytes.
        put_u64(data, at + 8, 0)
        put_u64(data, at + 16, 0)
        put_u64(data, at + 24, 0)
    put_u32(data, at, length)
    data[at + 4] = _OK
    data[at + 5] = _ANSWER
