"""Replies that report a failed request: a flag, and a body with a number, a name and a text.

Whatever the responder wrote, its requester gets a `RequestFailed`: a responder must not be able to
impersonate the gateway.
"""

from weft.errors import ProtocolError, RequestFailed
from weft.wire.frames import Flag, Kind
from weft.wire.message.field_types import checked_text
from weft.wire.message.message import Message

# In characters; the rest is cut off.
TEXT_MAX = 1024

_MESSAGE = int(Kind.MESSAGE)
_FAILED = int(Flag.FAILED)


def failure_message(text: str) -> Message:
    """The message that reports why a request failed.

    Raises:
        BadField: the text has no UTF-8 form.
    """
    return Message(
        number=RequestFailed.number,
        name=RequestFailed.__name__,
        text=checked_text(text)[:TEXT_MAX],
    )


def is_failure(frame: bytes) -> bool:
    """Return whether a whole frame is a reply that reports a failed request."""
    return frame[4] == _MESSAGE and frame[5] & _FAILED != 0


def failure_in(frame: bytes) -> RequestFailed:
    """Return the error of such a reply, whatever its body is."""
    try:
        text = Message.from_frame(frame).get("text")
    except ProtocolError:
        text = None
    if not isinstance(text, str) or not text:
        text = "the responder gave no reason"
    return RequestFailed(text[:TEXT_MAX])
