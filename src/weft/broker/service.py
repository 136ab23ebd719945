"""State of one service, and of each of its connections.

State only: ingest.py handles inbound bytes, sweep.py deadlines. Times are in ns: `wall_ns` since
the epoch for stamps, `now_ns` of a monotonic clock for ages. The owner of the service sets both
before each call.
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
from weft.broker.metering import Meter, PublisherTraffic
from weft.broker.routing.route import Route
from weft.broker.routing.router import Router
from weft.errors import WeftError
from weft.wire.buffer import Writer
from weft.wire.frames import HEADER_BYTES, NAME_MAX_BYTES, Frame, Run, Stamp
from weft.wire.message.message import Message

if TYPE_CHECKING:
    from weft.broker.delivery.backpressure import Allowances, PublisherHold
    from weft.broker.lane_hooks import Laning

# `_INBOX.`, eight digits for the gateway, a dot, and 24 for the connection.
INBOX_BYTES = 40
# Prefix of all inboxes of one gateway: up to the dot after its digits.
FAR_INBOX_BYTES = 16

_NAMES_BYTES = HEADER_BYTES + 2 * NAME_MAX_BYTES
_CUT = int(Policy.CUT)
_NOTHING = bytearray()
# Route of a peer before its first message: stale, so the first message looks it up.
NOWHERE = Route(b"", [])
NOWHERE.is_stale = True
# Empty tables, shared by all peers without entries; never added to.
NO_REQUESTS: dict[bytes, "Awaited"] = {}
NO_MASKS: dict[bytes, "Mask"] = {}
NO_CHANNELS: dict[bytes, bytes] = {}
NOTHING_ENABLED: frozenset[tuple[int, bytes]] = frozenset()
_NO_FLOW = PublisherTraffic(0)
PublisherTraffic(0).fold(_NO_FLOW)
_S = 1_000_000_000
# The arena holds some of the largest frames at once.
_LARGEST_IN_ARENA = 4
# Limit on bodies between gateways, independent of the limit for clients.
LINK_BODY_BYTES = 1 << 20
BODY_MAX_BYTES = ARENA_MAX_BYTES // _LARGEST_IN_ARENA - _NAMES_BYTES


class Door(Protocol):
    """Transport of a peer, as the broker calls it."""

    def fall_behind(self) -> None:
        """Called when a backlog begins, or after the peer was disconnected as a slow consumer."""

    def press(self) -> None:
        """Send more of the backlog if the socket has room for its first bytes."""

    def resume(self) -> None:
        """Resume reading after a hold."""

    def finish(self) -> None:
        """The peer has ended: close after its queued frames are sent."""

    def abort(self) -> None:
        """Close now and drop queued frames."""


# Gets peer, reply subject and request; returns an error, or None if the answer follows later.
Desk = Callable[["Peer", bytes, Message], WeftError | None]


class Holder:
    """Totals of all connections with one key: peers, pending requests and reply aliases."""

    def __init__(self, key_id: str) -> None:
        self.key_id = key_id
        self.peers = 0
        self.requests = 0
        self.masks = 0


class Awaited:
    """Pending request."""

    def __init__(self, requester: "Peer", responder: "Peer", subject: bytes, time_ns: int) -> None:
        self.requester = requester
        self.responder = responder
        self.subject = subject
        self.time_ns = time_ns
        # The alias of its reply subject, if it has one.
        self.stand_in = b""


class Mask:
    """Reply alias: the reply subject that it stands for, and its owner."""

    def __init__(self, owner: "Peer", reply: bytes, time_ns: int) -> None:
        self.owner = owner
        self.reply = reply
        self.time_ns = time_ns


class Peer:
    """Remote end of one connection: a client or a gateway.

    It is new, then greeted, then over; `error` is why it ended, None if it left by itself. `inbox`
    is the prefix of its own reply subjects, including the last dot.
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
        # Version of lanes that it supports; 0: none.
        self.lanes = 0
        # The key it authenticated with; None: the service has no keys.
        self.key: Key | None = None
        # Shared by all connections with its key; None without keys, and for gateways.
        self.holder: Holder | None = None
        self.rights: Rights | None = None
        # Permissions that it granted to clients: rights and patterns.
        self.enabling = NOTHING_ENABLED
        # Handles its frames, if it is a gateway.
        self.carrier: Carrier | None = None
        self.is_greeted = False
        # Splits its bytes into runs; the maximum frame size depends on who it is.
        self.run = service.greeting_run
        self.is_over = False
        self.error: WeftError | None = None
        self.joined_ns = service.wall_ns
        # Monotonic times: start, last bytes received, last ping, end.
        self.since_ns = self.heard_ns = service.now_ns
        self.pinged_ns = self.over_ns = 0
        # The beginning of an incomplete frame, and when it began.
        self.rest = b""
        self.rest_ns = 0
        self.large = _NOTHING
        self.large_fill = self.large_size = self.weight = 0
        self.control_credit = float(service.limits.control_burst)
        self.control_ns = service.now_ns
        self.meter: Meter | None = None
        # Subject and route of its last message: most publishers use few subjects.
        self.subject = b""
        self.is_system_subject = False
        # Its permissions for that subject; one it may not publish to is handled frame by frame.
        self.may_publish = self.may_request = True
        self.is_one_by_one = False
        self.route = NOWHERE
        self.flow = _NO_FLOW
        # Pending requests by reply subject: those it sent, and those it has to answer.
        self.asking = self.serving = NO_REQUESTS
        # Its reply aliases, oldest first; its channels: names by ids.
        self.masks, self.channels = NO_MASKS, NO_CHANNELS
        # Whether an event reported it as slow, and dropped messages that events reported.
        self.is_called_slow, self.dropped_said = False, 0
        # Reading is stopped: held because the journal is full, or paused because a subscriber is
        # above its high-water mark. `allowances` bounds how long it is paused or has others paused.
        self.is_held = self.is_paused = False
        self.allowances: Allowances | None = None

    def owe(self, frames: bytes) -> None:
        """Queue whole frames that must not be dropped; ignored after the peer's end."""
        if self.is_over:
            return
        service = self.service
        start = service.arena.put(frames)
        if start >= 0:
            self.outbox.push(start, len(frames), _CUT)
        else:
            self.outbox.hold(frames, service.now_ns)

    def owe_first(self, frames: bytes) -> None:
        """Queue control frames of a link ahead of the batches in its backlog."""
        if self.outbox.is_behind() and not self.is_over:
            self.outbox.overtake(frames)
        else:
            self.owe(frames)

    def end(self, error: WeftError | None) -> None:
        """End the peer: no more input; its transport sends queued frames and closes."""
        if not self.is_over:
            self.is_over = True
            self.error = error
            self.over_ns = self.service.now_ns
            self.service.ending.append(self)


class Service:
    """Namespace of subjects with its own connections.

    `secret` makes reply aliases unguessable; the owner of the service draws it at random.
    """

    def __init__(
        self, name: str, gateway: str, origin: int, limits: Limits, secret: bytes = b""
    ) -> None:
        self.name = name
        self.gateway = gateway
        largest = limits.body_bytes + _NAMES_BYTES
        self.arena = Arena(max(ARENA_BYTES, _LARGEST_IN_ARENA * largest))
        # Messages dropped by a bound in bytes or age, by the number of the reason.
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
        # Of all peers, gateways included: aliases created, pending requests.
        self.masks_made = self.requests = 0
        self.secret = secret
        # Handlers of system requests that are answered later than in the same turn.
        self.desks: dict[str, Desk] = {}
        # Forwards to remote gateways; called when a gateway opens a link.
        self.beyond: Beyond | None = None
        self.on_link: Callable[[Peer, Frame], None] | None = None
        # Coordinator of lanes; None: lanes are disabled.
        self.laning: Laning | None = None
        # Called when a member of channels has ended.
        self.on_member_over: Callable[[Peer], None] | None = None
        # Accepted keys, and permissions that services granted to clients. None: all are trusted.
        self.keyring: Keyring | None = None
        self.tickets = Tickets()
        self.enabled = Enabled()
        # Permissions changed since the last review; some were revoked; the service shuts down.
        self.is_review_due = self.is_right_lost = self.is_draining = False
        # Publishers paused for slow subscribers; none while it drains.
        self.holds: list[PublisherHold] = []
        # Number and text of the error that ended a connection, by its inbox, for its client.
        self.ended_why: OrderedDict[bytes, tuple[int, str]] = OrderedDict()
        # Example of a disconnected slow consumer since the last log line; `slow_count`: how many.
        self.slow_example = ""
        # Ended peers whose transports are not yet notified.
        self.ending: list[Peer] = []
        self.flow_count = self.unfinished_bytes = self.request_turn = self.slow_count = 0
        # Everything published, in messages and bytes; frames queued in outboxes, and bytes sent.
        self.total = PublisherTraffic(0)
        self.deliveries = self.bytes_out = 0
        self.refused: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self._number = 0

    def set_limits(self, limits: Limits) -> None:
        """Apply new limits; existing outboxes keep their bounds, the body limit is unchanged."""
        self.limits = msgspec.structs.replace(limits, body_bytes=self.limits.body_bytes)
        age_ns = int(limits.outbox_age_s * _S)
        self.budget.limit_bytes = limits.backlogs_bytes
        self.bounds = Bounds(limits.outbox_bytes, age_ns, self.dropped, self.budget)
        self.greeting_run = Run(max(0, limits.greeting_bytes - _NAMES_BYTES))
        # Cached: they are read for each request.
        self.requests_each = limits.requests
        self.requests_total = limits.requests_total
        self.requests_share = limits.share_of(limits.requests_total)

    def set_keys(self, keyring: Keyring | None) -> None:
        """Accept only these keys; None trusts every client.

        Connected peers are checked against them at the end of the turn.
        """
        self.keyring = keyring
        self.is_review_due = True
        self.is_right_lost = True

    def join(self, token: int, door: "Door") -> Peer:
        """Create the peer of a connection; the token is the unguessable part of its inbox."""
        number = self.next_number()
        secret = token & (1 << 64) - 1
        name = f"_INBOX.{self.stamp.origin:08x}.{number & 0xFFFFFFFF:08x}{secret:016x}."
        peer = Peer(self, number, name.encode(), door)
        self.peers[number] = peer
        self.inboxes[peer.inbox] = peer
        return peer

    def next_number(self) -> int:
        """A number that no publisher had since the service started."""
        self._number += 1
        return self._number

    def count_refused(self, name: str) -> None:
        """Count a refusal by the name of its error."""
        self.refused[name] = self.refused.get(name, 0) + 1

    def count_ended(self, name: str) -> None:
        """Count the end of a connection by the name of its error, or `left`."""
        self.ended[name] = self.ended.get(name, 0) + 1


def is_insider(peer: Peer) -> bool:
    """Return whether a peer belongs to the service: it is not a client, or there are no keys."""
    return peer.key is None or not peer.key.is_client
