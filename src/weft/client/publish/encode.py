"""What people publish, as the frames that carry it."""

from collections.abc import Mapping
from typing import Any

from weft.client.received import Received
from weft.errors import BadField
from weft.wire.buffer import Spare, Writer
from weft.wire.frames import Flag, Kind, encode, end_frame
from weft.wire.message.flat_codec import put_flat
from weft.wire.message.message import Field, Message
from weft.wire.subjects import checked_subject

# bytes travel bare, a str as one unnamed string field, a mapping as a field for every key.
Body = Message | Received | bytes | bytearray | memoryview | str | Mapping[str, Any]

_MESSAGE = int(Kind.MESSAGE)
_BARE = int(Flag.BARE)
_OPENINGS_MAX = 4096

# A program publishes to few subjects and often: the check costs more than all the rest.
_openings: dict[str, bytes] = {}
_spare = Spare()


def opening(subject: str) -> bytes:
    """How a message to a subject begins: header and subject, without size and flags.

    Raises:
        BadSubject: it is not a subject that can be published to.
    """
    found = _openings.get(subject)
    return _remembered(subject) if found is None else found


def message_frame(subject: str, body: Body, reply: str = "", flags: int = 0) -> bytes:
    """The frame that publishes a body to a subject.

    Raises:
        BadSubject: the subject or reply is not one that can be published to.
        BadField: the body is nothing that can be published.
    """
    writer = _spare.take()
    writer.put(opening(subject))
    if reply:
        # Not remembered: it is mostly an inbox, and another one each time.
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
    """The message that a body stands for.

    Raises:
        BadField: it is nothing that can be published.
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
    """Append a body; the flag that it needs."""
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
