"""Link events for the operator, kept until they are logged.

The mesh package does not log. It keeps a bounded number of events for its caller, and counts the
rest.
"""

from collections import Counter
from typing import NamedTuple

from weft.broker.service import Peer
from weft.errors import ProtocolError, Refused, WeftError, error_from_wire
from weft.mesh.links.link import Link
from weft.wire.message.message import Message

EVENTS_MAX = 256
CLOSING = "it is closing down"


class LinkEnded(NamedTuple):
    """End of a link; `is_orderly` if one of both gateways closed it on purpose."""

    number: int
    text: str
    is_orderly: bool


class Warned(NamedTuple):
    """Condition that an operator should act on; `kind` and `about` identify it."""

    kind: str
    about: str
    text: str


Event = LinkEnded | Warned


class LinkEvents:
    """Events of the links of one gateway since the last take()."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self.dropped = 0
        # Refused or failed handshakes, by the name of the error.
        self.not_linked: Counter[str] = Counter()

    def ended(self, link: Link) -> None:
        """Add the end of a link, with its reason."""
        error = link.peer.error
        text = link.ending or (str(error) if error is not None else "its connection was closed")
        is_orderly = bool(link.ending) and error is None
        self._add(LinkEnded(link.number, text, is_orderly))

    def turned_away(self, peer: Peer, text: str, *, is_logged: bool = True) -> None:
        """Count a failed or refused handshake; add an event unless it is logged elsewhere."""
        error = peer.error
        kind = "left" if error is None else type(error).__name__
        self.not_linked[kind] += 1
        # Timeouts of handshakes do not indicate a wrong setting.
        if is_logged and isinstance(error, Refused | ProtocolError) and kind != "TooSlow":
            self.warn(kind, peer.address.rpartition(":")[0], text)

    def warn(self, kind: str, about: str, text: str) -> None:
        """Add a condition that an operator should act on."""
        self._add(Warned(kind, about, text))

    def take(self) -> list[Event]:
        """Return the events since the last call, oldest first."""
        events, self._events = self._events, []
        return events

    def _add(self, event: Event) -> None:
        if len(self._events) < EVENTS_MAX:
            self._events.append(event)
        else:
            self.dropped += 1


def error_in(body: bytes) -> WeftError:
    """Return the error in a frame by which the other gateway closes a connection."""
    said = Message.from_body(body)
    number, text = said.get("number"), str(said.get("text", ""))
    reason = f"remote error: {text}" if text else "remote error without a reason"
    return error_from_wire(number if isinstance(number, int) else 0, reason)
