"""What a gateway said, as the session tells it to the engine."""

from dataclasses import dataclass

from weft.client.requests.pending_replies import Waiter
from weft.client.status import Gap
from weft.errors import WeftError


@dataclass(frozen=True, slots=True)
class Welcomed:
    """The gateway took the connection; the facts are in the session."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer came for somebody: a whole MESSAGE, OK or PONG frame."""

    waiter: Waiter
    frame: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The gateway refused what somebody asked for."""

    waiter: Waiter
    error: WeftError


@dataclass(frozen=True, slots=True)
class News:
    """The gateway refused what nobody awaits an answer to, or says why it ends the connection."""

    subject: str
    error: WeftError


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The gateway took back a subscription that this client may no longer have."""

    pattern: bytes
    group: bytes
    error: WeftError


@dataclass(frozen=True, slots=True)
class Missed:
    """Messages will not come."""

    gap: Gap


@dataclass(frozen=True, slots=True)
class Pinged:
    """The gateway wants to know that we live; this is the frame that says so."""

    pong: bytes


@dataclass(frozen=True, slots=True)
class Parting:
    """The gateway wants to part: what is still owed comes, then the end."""

    reason: str
    text: str
    # Where else to go, the best guess first.
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Relayed:
    """Messages came through the gateway while there are lanes: they may have to wait."""

    run: list[bytes]


@dataclass(frozen=True, slots=True)
class LaneTold:
    """The gateway says something about lanes: a whole LANE frame."""

    frame: bytes


@dataclass(frozen=True, slots=True)
class LaneTail:
    """A message that a lane did not bring: a whole TAIL frame."""

    frame: bytes


@dataclass(frozen=True, slots=True)
class Late:
    """An answer came after whoever awaited it had given up."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The conversation cannot go on; it is the last event of a connection."""

    error: WeftError


# Messages are their own event, whole frames of one subject and the same flags: an object for each
# would cost more than the rest.
Event = (
    list[bytes]
    | Welcomed
    | Answered
    | Failed
    | News
    | TakenBack
    | Missed
    | Pinged
    | Parting
    | Relayed
    | LaneTold
    | LaneTail
    | Late
    | Ended
)
