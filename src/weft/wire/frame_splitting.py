"""Helpers shared by all protocols: splitting bytes into frames, and the CONNECT frame."""

from weft.errors import BadFrame, WeftError, error_from_wire
from weft.wire.byteops import u32_at
from weft.wire.frames import HEADER_BYTES, PROTOCOL_VERSION, Frame, Kind, check_whole, encode
from weft.wire.message.message import Message
from weft.wire.subjects import is_subject

# A global is looked up faster than an attribute, and this is compared for each frame.
_HEADER = HEADER_BYTES
_MESSAGE = int(Kind.MESSAGE)


def each_frame(frames: bytes) -> list[bytes]:
    """Split consecutive whole frames.

    Raises:
            BadFrame: a size is under the header's, or exceeds the remaining bytes.
    """
    found: list[bytes] = []
    at = 0
    length = len(frames)
    while at < length:
        size = u32_at(frames, at)
        if size < _HEADER or size > length - at:
            raise BadFrame(f"a frame of {size} bytes is not in {_HEADER} … {length - at}")
        if size == length:
            return [frames]
        found.append(frames[at : at + size])
        at += size
    return found


def each_message(frames: bytes) -> list[bytes]:
    """Split a page of history, and check that it consists of valid MESSAGE frames only.

    Raises:
        BadFrame: incomplete frame, other kind, or invalid subject or reply.
    """
    found = each_frame(frames)
    for frame in found:
        check_whole(frame)
        names = _HEADER + frame[6]
        reply = frame[names : names + frame[7]]
        if frame[4] != _MESSAGE:
            raise BadFrame(f"a frame of kind {frame[4]} is not a message")
        if not is_subject(frame[_HEADER:names]) or (reply and not is_subject(reply)):
            raise BadFrame("a message whose subject or reply is not legal")
    return found


def error_in(frame: Frame) -> WeftError:
    """The error that an ERROR frame reports."""
    facts = Message.from_body(frame.body)
    return error_from_wire(facts.get_int64("number"), facts.get_string("text"))


def greeting(service: str, client: str, *, name: str = "", **proof: str) -> bytes:
    """The CONNECT frame of a peer whose protocol has none; `proof` is its key or ticket, if any."""
    told = {field: value for field, value in proof.items() if value}
    body = Message(version=PROTOCOL_VERSION, client=client, **told)
    return encode(Kind.CONNECT, service.encode(), body.encode(), name.encode())
