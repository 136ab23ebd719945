"""What people publish, as the frames that carry it."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from weft.client.received import Received
from weft.core.frames import Flag, Kind, begin_frame, encode, end_frame
from weft.core.messages import Field, Message
from weft.core.subjects import checked_subject
from weft.core.writer import Writer
from weft.errors import BadField

# bytes travel bare, a str as one unnamed string field, a mapping as a field for every key.
Body = Message | Received | bytes | bytearray | memoryview | str | Mapping[str, Any]

_MESSAGE = int(Kind.MESSAGE)
_BARE = int(Flag.BARE)
_SUBJECTS_CACHED = 4096

# A program publishes to few subjects and often: the check costs more than the rest of the header.
subject_bytes = lru_cache(_SUBJECTS_CACHED)(checked_subject)


def message_frame(subject: str, body: Body, reply: str = "", flags: int = 0) -> bytes:
    """The frame that publishes a body to a subject.

    Raises:
        BadSubject: the subject or reply is not one that can be published to.
        BadField: the body is nothing that can be published.
    """
    subject_name = subject_bytes(subject)
    reply_name = subject_bytes(reply) if reply else b""
    if type(body) is bytes:
        return encode(_MESSAGE, subject_name, body, reply_name, flags | _BARE)
    if isinstance(body, bytearray | memoryview):
        return encode(_MESSAGE, subject_name, bytes(body), reply_name, flags | _BARE)
    message = body if type(body) is Message else message_from(body)
    writer = Writer()
    start = begin_frame(writer, _MESSAGE, flags, subject_name, reply_name)
    message.put(writer)
    end_frame(writer, start)
    return writer.take()


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
