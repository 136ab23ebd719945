"""Bayeux channels and what they are here: `/sensors/london` is the subject `sensors.london`.

Of wildcards Bayeux has two, each as the last element: `/*` for one element, `/**` for one or more.
`/meta/…` is the protocol itself: nobody publishes there, and nothing that others publish to a
subject of that name may reach a client, which would take it for an answer.
"""

from weft.errors import BadSubject, Reserved, shortened
from weft.transports.json.paths import path_of
from weft.wire.subjects import checked_pattern, checked_subject

META = "/meta/"
HANDSHAKE = "/meta/handshake"
CONNECT = "/meta/connect"
SUBSCRIBE = "/meta/subscribe"
UNSUBSCRIBE = "/meta/unsubscribe"
DISCONNECT = "/meta/disconnect"
# Not of Bayeux: told where messages were lost, and ignored by whoever does not know it.
GAP = "/meta/gap"

_META_SUBJECT = b"meta."
_LOCAL = "_LOCAL"


def is_meta(channel: str) -> bool:
    """Say if a channel is the protocol's own."""
    return channel.startswith(META) or channel == "/meta"


def is_told(subject: bytes) -> bool:
    """Say if a client may be told of messages to a subject."""
    return not subject.startswith(_META_SUBJECT) and subject != b"meta"


def published_to(channel: str) -> bytes:
    """The subject that a message to a channel is published to.

    Raises:
        BadSubject: the channel cannot be published to.
        Reserved: it is the protocol's own.
    """
    if is_meta(channel):
        raise Reserved(f"channel {shortened(channel)} belongs to the protocol")
    return checked_subject(".".join(_elements(channel)))


def pattern_of(channel: object) -> bytes:
    """The pattern that a subscription to a channel asks for.

    Raises:
        BadSubject: it is no channel, or has a wildcard where none may be.
        Reserved: it is the protocol's or the gateway's own.
    """
    if not isinstance(channel, str):
        raise BadSubject(f"a channel is a string, not {type(channel).__name__}")
    if is_meta(channel):
        raise Reserved(f"channel {shortened(channel)} belongs to the protocol")
    *before, last = _elements(channel)
    first = before[0] if before else last
    if first.startswith("_") and first != _LOCAL:
        raise Reserved(f"channel {shortened(channel)} belongs to the system")
    if any("*" in element for element in before) or ("*" in last and last not in ("*", "**")):
        raise BadSubject(f"channel {shortened(channel)} has a wildcard elsewhere than at its end")
    if ">" in channel:
        raise BadSubject(f"channel {shortened(channel)} holds '>', which no element may")
    return checked_pattern(".".join([*before, ">" if last == "**" else last]))


def channel_of(subject: bytes) -> str:
    """The channel that a subject is."""
    return path_of(subject)


def _elements(channel: str) -> list[str]:
    if not channel.startswith("/"):
        raise BadSubject(f"a channel begins with '/', not like {shortened(channel)}")
    if "." in channel:
        raise BadSubject(f"channel {shortened(channel)} holds a dot, which no element may")
    return channel[1:].split("/")
