"""Events of links that an operator should see, kept until they are logged.

The fabric does not log. It keeps a bounded number of events for its caller, and counts the rest.
"""

from collections import Counter
from typing import NamedTuple

from weft.broker.service import Peer
from weft.errors import ProtocolError, Refused, WeftError, error_from_wire
from weft.mesh.links.link import Link
from weft.wire.message.message import Message

EVENTS_MAX = 256
CLOSING = "it is closing down"


class Ended(NamedTuple):
    """A link ended; `is_orderly` if one of both gateways meant it to."""

    number: int
    text: str
    is_orderly: bool


class Warned(NamedTuple):
    """Something an operator should act on; events with one `kind` and `about` are the same."""

    kind: str
    about: str
    text: str


Event = Ended | Warned


class LinkEvents:
    """What happened to the links of one gateway since it was last asked for."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self.dropped = 0
        # Gateways that were not linked with, by the name of the error.
        self.not_linked: Counter[str] = Counter()

    def ended(self, link: Link) -> None:
        """Add the end of a link, with its reason."""
        error = link.peer.error
        text = link.ending or (str(error) if error is not None else "its connection was closed")
        is_orderly = bool(link.ending) and error is None
        self._add(Ended(link.number, text, is_orderly))

    def turned_away(self, peer: Peer, text: str, *, is_logged: bool = True) -> None:
        """Count a gateway that was not linked with; add it unless it is logged otherwise."""
        error = peer.error
        kind = "left" if error is None else type(error).__name__
        self.not_linked[kind] += 1
        # Handshakes that were not finished in time say nothing about settings.
        if is_logged and isinstance(error, Refused | ProtocolError) and kind != "TooSlow":
            self.warn(kind, peer.address.rpartition(":")[0], text)

    def warn(self, kind: str, about: str, text: str) -> None:
        """Add something that an operator should act on."""
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
    """Return the error by which the gateway at the other end ends a connection."""
    said = Message.from_body(body)
    number, text = said.get("number"), str(said.get("text", ""))
    reason = f"it says: {text}" if text else "it does not say why"
    return error_from_wire(number if isinstance(number, int) else 0, reason)
