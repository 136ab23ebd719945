"""Everything Weft raises, split by who must act.

    WeftError
    ├── UsageError            you called it wrongly: change the call
    │   ├── BadSubject            a subject or pattern that the grammar forbids
    │   ├── BadField              a value its field cannot hold, or a message too large to send
    │   ├── NoSuchField           a look-up of a name the message does not have
    │   └── WrongType             a typed look-up of a field of another type
    └── ProtocolError         the peer sent what the protocol forbids: end the connection
        ├── BadFrame              a frame whose lengths contradict each other
        │   └── FrameTooBig           a frame over the limit, refused on its first four bytes
        └── BadMessage            a body that is not a message
            └── MessageTooBig         a body over the limits on depth, fields or values

On the wire an error is its number, its name and a sentence. The thousands tell a client what to do:
1xxx fix the call, 2xxx end the connection and report a bug. Numbers are never reused.
"""


class WeftError(Exception):
    """The root of everything Weft raises on purpose."""

    number = 0


class UsageError(WeftError, ValueError):
    """The caller asked for something that cannot be."""

    number = 1000


class BadSubject(UsageError):
    """A subject or pattern that the grammar forbids."""

    number = 1001


class BadField(UsageError):
    """A value its field type cannot hold, or fields beyond what one message may carry."""

    number = 1002


class NoSuchField(UsageError, KeyError):
    """A look-up of a name the message does not have."""

    number = 1003

    # KeyError prints the repr of its argument; people should read the sentence.
    __str__ = Exception.__str__


class WrongType(UsageError, TypeError):
    """A typed look-up of a field of another type."""

    number = 1004


class ProtocolError(WeftError):
    """The peer sent what the protocol forbids; nothing after it can be trusted."""

    number = 2000


class BadFrame(ProtocolError):
    """A frame whose lengths contradict each other."""

    number = 2001


class FrameTooBig(BadFrame):
    """A frame over the limit; refused on its first four bytes."""

    number = 2002


class BadMessage(ProtocolError):
    """A body that is not a message."""

    number = 2003


class MessageTooBig(BadMessage):
    """A body over the limits on depth, fields or values."""

    number = 2004


def shortened(text: str) -> str:
    """A text as an error may show it: quoted, and cut if it is long."""
    return repr(text) if len(text) <= 64 else f"{text[:64]!r}…"
