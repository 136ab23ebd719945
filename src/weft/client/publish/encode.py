"""Encoding of published bodies into frames."""

from collections.abc import Mapping
from typing import Any

from weft.client.received import Received
from weft.errors import BadField
from weft.wire.buffer import Spare, Writer
from weft.wire.frames import Flag, Kind, encode, end_frame
from weft.wire.message.flat_codec import put_flat
from weft.wire.message.message import Field, Message
from weft.wire.subjects import checked_subject

# bytes are sent as they are, a str as one unnamed string field, a mapping as a field per key.
Body = Message | Received | bytes | bytearray | memoryview | str | Mapping[str, Any]

_MESSAGE = int(Kind.MESSAGE)
_BARE = int(Flag.BARE)
_OPENINGS_MAX = 4096

# Cache: programs publish often to few subjects, and validation costs more than all the rest.
_openings: dict[str, bytes] = {}
_spare = Spare()


def opening(subject: str) -> bytes:
    """Return header and subject of a message, with size and flags left empty.

    Raises:
        BadSubject: Invalid subject, or one with wildcards.
    """
    found = _openings.get(subject)
    return _remembered(subject) if found is None else found


def message_frame(subject: str, body: Body, reply: str = "", flags: int = 0) -> bytes:
    """Return the frame that publishes a body to a subject.

    Raises:
        BadSubject: Invalid subject or reply, or one with wildcards.
        BadField: The body cannot be published.
    """
    writer = _spare.take()
    writer.put(opening(subject))
    if reply:
        # Not cached: it is usually an inbox, different for each message.
        name = checked_subject(reply)
        writer.put(name)
        writer.data[7] = len(name)
    if type(body) is not dict or not put_flat(writer, body):
        flags |= _put_body(writer, body)
    writer.data[5] = flags
    end_frame(writer, 0)
    frame = writer.take()
    _spare.give(writer)
    return frame


def message_from(body: Body) -> Message:
    """Return a body as a message.

    Raises:
        BadField: The body cannot be published.
    """
    if isinstance(body, Message):
        return body
    if isinstance(body, Received):
        return body.message
    if isinstance(body, str):
        return Message(Field.string("", body))
    if isinstance(body, bytes | bytearray | memoryview):
        return Message.from_payload(bytes(body))
    if isinstance(body, Mapping):
        return Message.from_dict(body)
    raise BadField(f"{type(body).__name__} cannot be published: give a Message, bytes, str or dict")


def _put_body(writer: Writer, body: Body) -> int:
    """Append a body; return the flag that it requires."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        writer.put(bytes(body))
        return _BARE
    message = body if type(body) is Message else message_from(body)
    message.put(writer)
    return 0


def _remembered(subject: str) -> bytes:
    made = encode(_MESSAGE, checked_subject(subject))
    if len(_openings) >= _OPENINGS_MAX:
        _openings.clear()
    _openings[subject] = made
    return made
