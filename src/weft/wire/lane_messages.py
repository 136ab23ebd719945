"""What is said about lanes, and by them: LANE frames, whose `word` says what the rest is.

docs/protocol.md lists the words. Both ends of a lane and the gateway between them write and read
them with this.
"""

from weft.errors import BadMessage, NoSuchField, WrongType
from weft.wire import frames
from weft.wire.frames import Kind
from weft.wire.message.message import Message

# How a client says in its greeting that it knows of lanes.
VERSION = 1
# The most that one word may take before the lane is proven.
GREETING_BODY_BYTES = 1024


def lane_frame(word: str, subject: bytes = b"", **fields: object) -> bytes:
    """The frame of one word."""
    body = Message.from_dict({"word": word, **fields}).encode()
    return frames.encode(Kind.LANE, subject, body)


def word_in(frame: bytes) -> tuple[str, Message]:
    """Which word a LANE frame is, and its fields.

    Raises:
        BadMessage: it is none.
    """
    facts = Message.from_frame(frame)
    try:
        return facts.get_string("word"), facts
    except (NoSuchField, WrongType) as error:
        raise BadMessage(f"a LANE frame without a word: {error}") from error
