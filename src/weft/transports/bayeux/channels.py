"""Bayeux channels as subjects: `/sensors/london` is `sensors.london`.

Bayeux has two wildcards, each as the last element: `/*` for one element, `/**` for one or more.
`/meta/…` is the protocol itself: clients cannot publish there, and a message to a subject of that
name must not reach a client, which would take it for an answer.
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
# Our extension: reports lost messages; clients that do not know it ignore it.
GAP = "/meta/gap"

_META_SUBJECT = b"meta."
_LOCAL = "_LOCAL"


def is_meta(channel: str) -> bool:
    """Return whether a channel belongs to the protocol."""
    return channel.startswith(META) or channel == "/meta"


def is_told(subject: bytes) -> bool:
    """Return whether clients may receive messages to a subject."""
    return not subject.startswith(_META_SUBJECT) and subject != b"meta"


def published_to(channel: str) -> bytes:
    """Return the subject for a message to a channel.

    Raises:
        BadSubject: invalid channel.
        Reserved: the channel belongs to the protocol.
    """
    if is_meta(channel):
        raise Reserved(f"channel {shortened(channel)} belongs to the protocol")
    return checked_subject(".".join(_elements(channel)))


def pattern_of(channel: object) -> bytes:
    """Return the pattern for a subscription to a channel.

    Raises:
        BadSubject: invalid channel, or a wildcard elsewhere than at its end.
        Reserved: the channel belongs to the protocol or the gateway.
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
        raise BadSubject(f"channel {shortened(channel)} has a wildcard before its end")
    if ">" in channel:
        raise BadSubject(
            f"channel {shortened(channel)} contains '>': it is not allowed in channels"
        )
    return checked_pattern(".".join([*before, ">" if last == "**" else last]))


def channel_of(subject: bytes) -> str:
    """Return the channel of a subject."""
    return path_of(subject)


def _elements(channel: str) -> list[str]:
    if not channel.startswith("/"):
        raise BadSubject(f"channel {shortened(channel)} does not begin with '/'")
    if "." in channel:
        raise BadSubject(
            f"channel {shortened(channel)} contains a dot: dots are not allowed in channels"
        )
    return channel[1:].split("/")
