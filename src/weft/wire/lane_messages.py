"""Control messages of lanes: LANE frames, whose field `word` names the message type.

docs/protocol.md lists the types. Both ends of a lane and the gateway between them encode and decode
them with this module.
"""

from weft.errors import BadMessage, NoSuchField, WrongType
from weft.wire import frames
from weft.wire.frames import Kind
from weft.wire.message.message import Message

# Protocol version in a client's greeting, which announces support for lanes.
VERSION = 1
# Limit on the body of one control message before the lane is authenticated.
GREETING_BODY_BYTES = 1024


def lane_frame(word: str, subject: bytes = b"", **fields: object) -> bytes:
    """Encode a control message as a LANE frame."""
    body = Message.from_dict({"word": word, **fields}).encode()
    return frames.encode(Kind.LANE, subject, body)


def word_in(frame: bytes) -> tuple[str, Message]:
    """Return type and fields of a LANE frame.

    Raises:
        BadMessage: invalid message, or without a field `word`.
    """
    facts = Message.from_frame(frame)
    try:
        return facts.get_string("word"), facts
    except (NoSuchField, WrongType) as error:
        raise BadMessage(f"a LANE frame without the field word: {error}") from error
