"""State of routes that are or were hot: one connection's messages to one subject.

Bounded: a route over the limit of live ones is refused; over the limit of known ones, the idle one
that changed longest ago is dropped.
"""

from collections.abc import Iterator
from enum import StrEnum

from weft.broker.routing.route import Route
from weft.broker.service import NOWHERE, Peer

# Limit on live routes of a service: asked, offered, direct or withdrawing.
LIVE_MAX = 1024
# Limit on known routes of a service.
KNOWN_MAX = 4096
# Limit on live routes of one connection.
LIVE_PER_PEER_MAX = 64


class RouteState(StrEnum):
    """State of a route, from relayed by the gateway to direct by lanes and back."""

    RELAYED = "relayed"
    ASKED = "asked"
    OFFERED = "offered"
    DIRECT = "direct"
    WITHDRAWING = "withdrawing"


class Cause(StrEnum):
    """Why a route is no longer direct."""

    RATE = "rate"
    AUDIENCE = "audience"
    PUBLISHER = "publisher"
    RIGHTS = "rights"
    SETTINGS = "settings"


class LaneReceiver:
    """Receiver of a route, with the address and credentials of its lane."""

    def __init__(self, peer: Peer, ticket: bytes, key: bytes, is_encrypted: bool) -> None:
        self.peer = peer
        self.ticket = ticket
        self.key = key
        self.is_encrypted = is_encrypted
        # The publisher may send it requests, not only messages.
        self.answers = False
        self.is_ready = False
        self.address = ""
        self.unix = ""

    def __repr__(self) -> str:
        return f"Receiver({self.peer.name!r})"


class LaneRoute:
    """Messages of one connection to one subject, and whether lanes carry them."""

    def __init__(self, publisher: Peer, subject: bytes) -> None:
        self.publisher = publisher
        self.subject = subject
        self.state = RouteState.RELAYED
        self.reason = ""
        # Wall-clock time.
        self.since_ns = publisher.service.wall_ns
        # Source of the receivers; stale after a subscription changed.
        self.route: Route = NOWHERE
        self.receivers: dict[int, LaneReceiver] = {}
        # Receivers that unsubscribed: if they subscribe again, they have missed messages.
        self.left: set[int] = set()
        # Deadline of the step that the state awaits.
        self.deadline_ns = 0
        # Since when the rate is over the threshold, or well below it; 0: it is not.
        self.hot_ns = 0
        self.cold_ns = 0
        self.not_before_ns = 0
        self.failures = 0
        # Reason of the last failure.
        self.failure = ""
        # Receivers at that failure: with others it may succeed.
        self.failed_with: frozenset[int] = frozenset()
        # Its publisher requested lanes, whatever the rate.
        self.is_pinned = False
        # The publisher confirmed that it sends by lanes.
        self.is_proven = False
        # The publisher ignored an offer until its deadline: it must not go direct any more.
        self.is_lapsed = False
        # Peers with replies held until the route is back.
        self.waiters: set[int] = set()
        # Number of receivers by lanes; totals by lanes; time of the last count; end of the lanes.
        self.width = 0
        self.messages = 0
        self.bytes = 0
        self.counted_ns = 0
        self.direct_ns = 0
        # Totals by lanes and relayed when it last became direct.
        self._by_lanes_before = 0
        self._relayed_before = 0

    def begin(self, total: int) -> None:
        """Start counting the relayed share; `total` is the number of messages so far."""
        self._by_lanes_before = self.messages
        self._relayed_before = total - self.messages

    def relayed_share(self, total: int) -> float:
        """The share relayed since the route is direct; `total` is the number of messages so far."""
        relayed = total - self.messages - self._relayed_before
        went = relayed + self.messages - self._by_lanes_before
        return relayed / went if went > 0 else 0.0

    @property
    def key(self) -> tuple[int, bytes]:
        """Publisher's number and subject."""
        return self.publisher.number, self.subject

    @property
    def is_live(self) -> bool:
        """Return whether lanes are being negotiated, in use or being withdrawn."""
        return self.state is not RouteState.RELAYED


class LaneRoutes:
    """Known routes, by publisher and subject."""

    def __init__(self) -> None:
        self._routes: dict[tuple[int, bytes], LaneRoute] = {}
        self._live: dict[tuple[int, bytes], LaneRoute] = {}

    def __len__(self) -> int:
        return len(self._routes)

    def __iter__(self) -> Iterator[LaneRoute]:
        return iter(list(self._routes.values()))

    def get(self, number: int, subject: bytes) -> LaneRoute | None:
        """The route of a connection to a subject, if it is known."""
        return self._routes.get((number, subject))

    def begin(self, publisher: Peer, subject: bytes) -> LaneRoute | None:
        """The route of a connection to a subject, created if missing; None if the table is full."""
        route = self._routes.get((publisher.number, subject))
        if route is None:
            if len(self._routes) >= KNOWN_MAX and not self._forget_oldest():
                return None
            route = self._routes[(publisher.number, subject)] = LaneRoute(publisher, subject)
        return route

    def drop(self, route: LaneRoute) -> None:
        """Remove a route."""
        self._routes.pop(route.key, None)
        self._live.pop(route.key, None)

    def become(self, route: LaneRoute, state: RouteState, reason: str) -> None:
        """Set the state of a route, and the reason."""
        if state is not route.state:
            route.since_ns = route.publisher.service.wall_ns
        route.state = state
        route.reason = reason
        if route.is_live:
            self._live[route.key] = route
        else:
            self._live.pop(route.key, None)

    def live(self) -> list[LaneRoute]:
        """The live routes."""
        return list(self._live.values())

    def of(self, number: int) -> list[LaneRoute]:
        """The routes of one publisher."""
        return [route for key, route in self._routes.items() if key[0] == number]

    def direct(self) -> int:
        """The number of direct routes."""
        return sum([route.state is RouteState.DIRECT for route in self._live.values()])

    def no_room(self, publisher: Peer) -> str:
        """Why no other route can become live; empty if one can."""
        live = self._live
        if len(live) >= LIVE_MAX:
            return f"{len(live)} routes are on lanes or in negotiation, which is the limit"
        own = sum([route.publisher is publisher for route in live.values()])
        if own >= LIVE_PER_PEER_MAX:
            return f"{own} routes of this connection are on lanes, which is the limit"
        return ""

    def _forget_oldest(self) -> bool:
        idle = [route for route in self._routes.values() if not route.is_live]
        if idle:
            self.drop(min(idle, key=_since))
        return len(idle) > 0


def _since(route: LaneRoute) -> int:
    return route.since_ns
