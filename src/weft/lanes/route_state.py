"""Routes that are hot, or were: what one connection publishes to one subject, and where it goes.

Bounded: those that are on their way to lanes or on them by a number that is refused beyond, the
others by forgetting the one that changed longest ago.
"""

from collections.abc import Iterator
from enum import StrEnum

from weft.broker.routing.route import Route
from weft.broker.service import NOWHERE, Peer

# Routes of a service that are asked about, offered, direct or on their way back.
LIVE_MAX = 1024
# All of those that are known.
KNOWN_MAX = 4096
# Routes of one connection that are live.
LIVE_PER_PEER_MAX = 64


class State(StrEnum):
    """Where the messages of a route go, and where they are about to."""

    RELAYED = "relayed"
    ASKED = "asked"
    OFFERED = "offered"
    DIRECT = "direct"
    WITHDRAWING = "withdrawing"


class Cause(StrEnum):
    """What ended that a route was direct, of a few kinds."""

    RATE = "rate"
    AUDIENCE = "audience"
    PUBLISHER = "publisher"
    RIGHTS = "rights"
    SETTINGS = "settings"


class Receiver:
    """One of those who are to get a route by lanes, as far as it is known how."""

    def __init__(self, peer: Peer, ticket: bytes, key: bytes, is_encrypted: bool) -> None:
        self.peer = peer
        self.ticket = ticket
        self.key = key
        self.is_encrypted = is_encrypted
        # It may be asked, and not only told.
        self.answers = False
        self.is_ready = False
        self.address = ""
        self.unix = ""

    def __repr__(self) -> str:
        return f"Receiver({self.peer.name!r})"


class LaneRoute:
    """What one connection publishes to one subject, and where it goes."""

    def __init__(self, publisher: Peer, subject: bytes) -> None:
        self.publisher = publisher
        self.subject = subject
        self.state = State.RELAYED
        self.reason = ""
        # Of the clock that people go by.
        self.since_ns = publisher.service.wall_ns
        # What the receivers were found in; stale once somebody came or went.
        self.route: Route = NOWHERE
        self.receivers: dict[int, Receiver] = {}
        # Receivers that have unsubscribed since: they may be back, and miss what was in between.
        self.left: set[int] = set()
        # When to wait no longer for what somebody is to say.
        self.deadline_ns = 0
        # Since when it is over the threshold, or well below it; 0: it is not.
        self.hot_ns = 0
        self.cold_ns = 0
        self.not_before_ns = 0
        self.failures = 0
        # Why it failed last.
        self.failure = ""
        # Who was to get it when it failed: with others it may not.
        self.failed_with: frozenset[int] = frozenset()
        # Its publisher asked for it, whatever the rate.
        self.is_pinned = False
        # The publisher has said that it went direct.
        self.is_proven = False
        # It was told to come back and never answered: it must not go direct any more.
        self.is_lapsed = False
        # Those who wait for it to be back.
        self.waiters: set[int] = set()
        # To how many it went by lanes; what did, when that was last told, and until when it may be.
        self.width = 0
        self.messages = 0
        self.bytes = 0
        self.counted_ns = 0
        self.direct_ns = 0
        # What had gone each way when it last became direct.
        self._by_lanes_before = 0
        self._relayed_before = 0

    def begin(self, total: int) -> None:
        """Count anew what goes which way; so many messages were there in all until now."""
        self._by_lanes_before = self.messages
        self._relayed_before = total - self.messages

    def relayed_share(self, total: int) -> float:
        """What part of it went through the gateway since it is direct; so many are there in all."""
        relayed = total - self.messages - self._relayed_before
        went = relayed + self.messages - self._by_lanes_before
        return relayed / went if went > 0 else 0.0

    @property
    def key(self) -> tuple[int, bytes]:
        """What it is known by."""
        return self.publisher.number, self.subject

    @property
    def is_live(self) -> bool:
        """Say if anything was said about lanes that still counts."""
        return self.state is not State.RELAYED


class LaneRoutes:
    """All that are known, by publisher and subject."""

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
        """The route of a connection to a subject; None if there is no room for another."""
        route = self._routes.get((publisher.number, subject))
        if route is None:
            if len(self._routes) >= KNOWN_MAX and not self._forget_oldest():
                return None
            route = self._routes[(publisher.number, subject)] = LaneRoute(publisher, subject)
        return route

    def drop(self, route: LaneRoute) -> None:
        """Forget a route."""
        self._routes.pop(route.key, None)
        self._live.pop(route.key, None)

    def become(self, route: LaneRoute, state: State, reason: str) -> None:
        """Have a route be in another state, for a reason."""
        if state is not route.state:
            route.since_ns = route.publisher.service.wall_ns
        route.state = state
        route.reason = reason
        if route.is_live:
            self._live[route.key] = route
        else:
            self._live.pop(route.key, None)

    def live(self) -> list[LaneRoute]:
        """Those that anything was said about that still counts."""
        return list(self._live.values())

    def of(self, number: int) -> list[LaneRoute]:
        """Those of one publisher."""
        return [route for key, route in self._routes.items() if key[0] == number]

    def direct(self) -> int:
        """How many go by lanes."""
        return sum([route.state is State.DIRECT for route in self._live.values()])

    def no_room(self, publisher: Peer) -> str:
        """Why no other route can become live; empty if it can."""
        live = self._live
        if len(live) >= LIVE_MAX:
            return f"{len(live)} routes are on lanes or about to be, which is the limit"
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
