"""One service as its connections share it, and what is known of each of them.

State only: what comes in is dealt with by intake.py, what time brings by watch.py. Times are ns:
`wall_ns` since the epoch for stamps, `now_ns` of a clock that only goes forward for ages. Whoever
runs the service sets both before it hands anything in.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from weft.broker.auth.keys import Key, Keyring
from weft.broker.auth.permissions import Enabled, Rights
from weft.broker.auth.tickets import Tickets
from weft.broker.delivery.arena import ARENA_BYTES, ARENA_MAX_BYTES, Arena
from weft.broker.delivery.memory_budget import Budget
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds, Policy, Reason
from weft.broker.limits import Limits
from weft.broker.mesh_hooks import Beyond, Carrier
from weft.broker.metering import Flow, Meter
from weft.broker.routing.route import Route
from weft.broker.routing.router import Router
from weft.errors import WeftError
from weft.wire.buffer import Writer
from weft.wire.frames import HEADER_BYTES, NAME_MAX_BYTES, Frame, Run, Stamp
from weft.wire.message.message import Message

if TYPE_CHECKING:
    from weft.broker.delivery.backpressure import Allowances, Hold
    from weft.broker.lane_hooks import Laning

# `_INBOX.`, eight digits for the gateway, a dot, and 24 for the connection.
INBOX_BYTES = 40
# Those of another gateway all begin with so many bytes, the dot after its digits included.
FAR_INBOX_BYTES = 16

_NAMES_BYTES = HEADER_BYTES + 2 * NAME_MAX_BYTES
_CUT = int(Policy.CUT)
_NOTHING = bytearray()
# What a peer has before its first message: looked up anew when it is found stale.
NOWHERE = Route(b"", [])
NOWHERE.is_stale = True
# What most peers have at any moment, shared by all of them and never added to.
NO_REQUESTS: dict[bytes, "Awaited"] = {}
NO_MASKS: dict[bytes, "Mask"] = {}
NO_CHANNELS: dict[bytes, bytes] = {}
NOTHING_ENABLED: frozenset[tuple[int, bytes]] = frozenset()
_NO_FLOW = Flow(0)
Flow(0).fold(_NO_FLOW)
_S = 1_000_000_000
# The arena holds some of the largest frames at once.
_LARGEST_IN_ARENA = 4
# What gateways tell each other is not bounded by what clients may send.
LINK_BODY_BYTES = 1 << 20
BODY_MAX_BYTES = ARENA_MAX_BYTES // _LARGEST_IN_ARENA - _NAMES_BYTES


class Door(Protocol):
    """What is asked of the way that a peer came in by."""

    def fall_behind(self) -> None:
        """There is a backlog to be sent, or the reader was given up."""

    def press(self) -> None:
        """Send more of the backlog if there is room for the least of it."""

    def resume(self) -> None:
        """Read again, after the peer was held."""

    def finish(self) -> None:
        """The peer is over: close once it has been sent what it is owed."""

    def abort(self) -> None:
        """Close at once, whatever is owed."""


# Takes a question, and who asks where; says what is wrong with it, or None: the answer comes later.
Desk = Callable[["Peer", bytes, Message], WeftError | None]


class Holder:
    """All connections with one key, and how many requests and masks they have."""

    def __init__(self, key_id: str) -> None:
        self.key_id = key_id
        self.peers = 0
        self.requests = 0
        self.masks = 0


class Awaited:
    """A request that waits for its answer."""

    def __init__(self, requester: "Peer", responder: "Peer", subject: bytes, time_ns: int) -> None:
        self.requester = requester
        self.responder = responder
        self.subject = subject
        self.time_ns = time_ns
        # What stands in for its reply subject, if anything does.
        self.stand_in = b""


class Mask:
    """What a stand-in leads to: a reply subject, of whoever had it masked."""

    def __init__(self, owner: "Peer", reply: bytes, time_ns: int) -> None:
        self.owner = owner
        self.reply = reply
        self.time_ns = time_ns


class Peer:
    """Whoever is at the other end of one connection.

    It is greeted, then open, then over; `error` says why it is over, None if it left by itself.
    `inbox` is what all its own reply subjects begin with, the last dot included.
    """

    def __init__(self, service: "Service", number: int, inbox: bytes, door: "Door") -> None:
        self.service = service
        self.outbox = Outbox(service.arena, service.bounds)
        self.outbox.owner = self
        self.door: Door | None = door
        self.number = number
        self.inbox = inbox
        self.name = ""
        self.address = ""
        self.client = ""
        # The version of lanes that it knows; 0: none.
        self.lanes = 0
        # Who it has shown to be, and what that allows; None: it is trusted.
        self.key: Key | None = None
        # Shared by all that came with its key; None without keys, and of other gateways.
        self.holder: Holder | None = None
        self.rights: Rights | None = None
        # What it has enabled for clients: rights and patterns.
        self.enabling = NOTHING_ENABLED
        # Whoever deals with what it says, if it is another gateway.
        self.carrier: Carrier | None = None
        self.is_greeted = False
        # By which its bytes are taken apart: how large a frame may be depends on who it is.
        self.run = service.greeting_run
        self.is_over = False
        self.error: WeftError | None = None
        self.joined_ns = service.wall_ns
        # Of the clock that only goes forward: the beginning, the last word, the last ping, the end.
        self.since_ns = self.heard_ns = service.now_ns
        self.pinged_ns = self.over_ns = 0
        # The beginning of a frame whose rest has yet to come, and since when.
        self.rest = b""
        self.rest_ns = 0
        self.large = _NOTHING
        self.large_fill = self.large_size = self.weight = 0
        self.control_credit = float(service.limits.control_burst)
        self.control_ns = service.now_ns
        self.meter: Meter | None = None
        # Where its last message went: most publishers keep to a few subjects.
        self.subject = b""
        self.is_system_subject = False
        # What it may do with that subject; what it may not only publish to goes one by one.
        self.may_publish = self.may_request = True
        self.is_one_by_one = False
        self.route = NOWHERE
        self.flow = _NO_FLOW
        # Unanswered requests by reply subject: those it made, and those it was given.
        self.asking = self.serving = NO_REQUESTS
        # What stands in for its reply subjects, oldest first; its channels: names by ids.
        self.masks, self.channels = NO_MASKS, NO_CHANNELS
        # What was already said about its slow reading.
        self.is_called_slow, self.dropped_said = False, 0
        # Nothing is read from it for now, as it publishes faster than the journal is written; or
        # faster than its messages are read. How long that may be, and it may have others held.
        self.is_held = self.is_paused = False
        self.allowances: Allowances | None = None

    def owe(self, frames: bytes) -> None:
        """Owe it whole frames that must not be dropped; one that is over has heard the last."""
        if self.is_over:
            return
        service = self.service
        start = service.arena.put(frames)
        if start >= 0:
            self.outbox.push(start, len(frames), _CUT)
        else:
            self.outbox.hold(frames, service.now_ns)

    def owe_first(self, frames: bytes) -> None:
        """Owe a link whole control frames, before the envelopes that wait."""
        if self.outbox.is_behind() and not self.is_over:
            self.outbox.overtake(frames)
        else:
            self.owe(frames)

    def end(self, error: WeftError | None) -> None:
        """Take nothing more from it; its door sends what it is owed and closes."""
        if not self.is_over:
            self.is_over = True
            self.error = error
            self.over_ns = self.service.now_ns
            self.service.ending.append(self)


class Service:
    """A namespace of its own: its subjects mix with those of no other service.

    The secret keeps stand-ins from being guessed; whoever runs the service makes it, by chance.
    """

    def __init__(
        self, name: str, gateway: str, origin: int, limits: Limits, secret: bytes = b""
    ) -> None:
        self.name = name
        self.gateway = gateway
        largest = limits.body_bytes + _NAMES_BYTES
        self.arena = Arena(max(ARENA_BYTES, _LARGEST_IN_ARENA * largest))
        # Messages dropped for want of room or time, by the number of the reason.
        self.dropped = [0] * (len(Reason) + 1)
        self.budget = Budget()
        self.limits = limits
        self.set_limits(limits)
        self.router = Router()
        self.run = Run(limits.body_bytes)
        self.link_run = Run(max(limits.body_bytes, LINK_BODY_BYTES))
        self.stamp = Stamp(origin, sequence=1)
        self.writer = Writer()
        self.wall_ns = 0
        self.now_ns = 0
        self.peers: dict[int, Peer] = {}
        self.inboxes: dict[bytes, Peer] = {}
        self.masks: dict[bytes, Mask] = {}
        self.holders: dict[str, Holder] = {}
        # Of all clients and other gateways: masks so far, requests that wait for an answer.
        self.masks_made = self.requests = 0
        self.secret = secret
        # Who answers which questions later, because the answer is not to be had in a turn.
        self.desks: dict[str, Desk] = {}
        # Other gateways, and who is told that one of them asks to be linked with.
        self.beyond: Beyond | None = None
        self.on_link: Callable[[Peer, Frame], None] | None = None
        # Who looks after lanes. None: nobody does, and they are not spoken of.
        self.laning: Laning | None = None
        # Who is told that a member of channels is over.
        self.on_member_over: Callable[[Peer], None] | None = None
        # Who may come in, and what services enabled for clients. None: everyone is trusted.
        self.keyring: Keyring | None = None
        self.tickets = Tickets()
        self.enabled = Enabled()
        # Rights have changed since they were last reviewed; some of them were lost; it closes down.
        self.is_review_due = self.is_right_lost = self.is_draining = False
        # Publishers that are held back for the sake of their readers; none are while it drains.
        self.holds: list[Hold] = []
        # Number and text of the error that ended a connection, by its inbox, for its client.
        self.ended_why: OrderedDict[bytes, tuple[int, str]] = OrderedDict()
        # Readers that were cut since somebody last looked: an example, and below how many.
        self.slow_example = ""
        # Those whose doors have yet to be told that they are over.
        self.ending: list[Peer] = []
        self.flow_count = self.unfinished_bytes = self.request_turn = self.slow_count = 0
        # Everything published, messages and bytes; what of it was handed to outboxes and sent.
        self.total = Flow(0)
        self.deliveries = self.bytes_out = 0
        self.refused: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self._number = 0

    def set_limits(self, limits: Limits) -> None:
        """Go by other limits; outboxes keep their bounds, and the largest body stays as it was."""
        self.limits = msgspec.structs.replace(limits, body_bytes=self.limits.body_bytes)
        age_ns = int(limits.outbox_age_s * _S)
        self.budget.limit_bytes = limits.backlogs_bytes
        self.bounds = Bounds(limits.outbox_bytes, age_ns, self.dropped, self.budget)
        self.greeting_run = Run(max(0, limits.greeting_bytes - _NAMES_BYTES))
        # Looked up with each request.
        self.requests_each = limits.requests
        self.requests_total = limits.requests_total
        self.requests_share = limits.share_of(limits.requests_total)

    def set_keys(self, keyring: Keyring | None) -> None:
        """Let in whoever has one of these keys, and nobody else; None trusts everyone.

        What it means for those who are here already is reviewed at the end of the turn.
        """
        self.keyring = keyring
        self.is_review_due = True
        self.is_right_lost = True

    def join(self, token: int, door: "Door") -> Peer:
        """Make the peer for a connection; the token is what nobody can guess of its inbox."""
        number = self.next_number()
        secret = token & (1 << 64) - 1
        name = f"_INBOX.{self.stamp.origin:08x}.{number & 0xFFFFFFFF:08x}{secret:016x}."
        peer = Peer(self, number, name.encode(), door)
        self.peers[number] = peer
        self.inboxes[peer.inbox] = peer
        return peer

    def next_number(self) -> int:
        """A number that no publisher has had since the service began."""
        self._number += 1
        return self._number

    def count_refused(self, name: str) -> None:
        """Count a refusal by the name of its error."""
        self.refused[name] = self.refused.get(name, 0) + 1

    def count_ended(self, name: str) -> None:
        """Count the end of a connection by the name of its error, or `left`."""
        self.ended[name] = self.ended.get(name, 0) + 1


def is_insider(peer: Peer) -> bool:
    """Say if a peer belongs to the service: it is no client, or everyone is trusted."""
    return peer.key is None or not peer.key.is_client
