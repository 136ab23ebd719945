"""Events that the session reports to the engine."""

from dataclasses import dataclass

from weft.client.requests.pending_replies import Waiter
from weft.client.status import Gap
from weft.errors import WeftError


@dataclass(frozen=True, slots=True)
class Welcomed:
    """The gateway accepted the connection; the session holds the details."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer for a waiter: a whole MESSAGE, OK or PONG frame."""

    waiter: Waiter
    frame: bytes


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """The gateway refused the request of a waiter."""

    waiter: Waiter
    error: WeftError


@dataclass(frozen=True, slots=True)
class News:
    """The gateway refused a frame without a waiter, or reports why it ends the connection."""

    subject: str
    error: WeftError


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The gateway revoked a subscription for lack of permission or because its channel ended."""

    pattern: bytes
    group: bytes
    error: WeftError


@dataclass(frozen=True, slots=True)
class MessagesLost:
    """Messages were lost."""

    gap: Gap


@dataclass(frozen=True, slots=True)
class Pinged:
    """The gateway sent PING; `pong` is the frame that answers it."""

    pong: bytes


@dataclass(frozen=True, slots=True)
class Parting:
    """The gateway says goodbye: queued frames follow, then the end."""

    reason: str
    text: str
    # Recommended gateways, the best first.
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Relayed:
    """Messages from the gateway while lanes are open: they may have to wait for lane messages."""

    run: list[bytes]


@dataclass(frozen=True, slots=True)
class LaneTold:
    """A control message about lanes: a whole LANE frame."""

    frame: bytes


@dataclass(frozen=True, slots=True)
class LaneTail:
    """A message that its lane did not deliver: a whole TAIL frame."""

    frame: bytes


@dataclass(frozen=True, slots=True)
class Late:
    """An answer arrived after its waiter had given up."""


@dataclass(frozen=True, slots=True)
class ConnectionEnded:
    """A protocol error or refusal ends the connection; its last event."""

    error: WeftError


# Messages are events themselves, as lists of whole frames with the same subject and flags: an
# object for each would cost more than the rest.
Event = (
    list[bytes]
    | Welcomed
    | Answered
    | RefusedRequest
    | News
    | TakenBack
    | MessagesLost
    | Pinged
    | Parting
    | Relayed
    | LaneTold
    | LaneTail
    | Late
    | ConnectionEnded
)
