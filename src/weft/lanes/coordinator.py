"""Coordinator of a service's lanes: finds hot routes and handles lane control messages.

Without clock and sockets: the service has the time. The owner passes a function that returns a
connection's host, and calls tick() about once a second.
"""

from collections.abc import Callable

from weft.broker.auth.permissions import may_not
from weft.broker.lane_hooks import Laning
from weft.broker.metering import Meter, PublisherTraffic
from weft.broker.rate_limit import spend
from weft.broker.service import Peer, Service
from weft.broker.subscribe import may_subscribe
from weft.errors import BadOption, NotAllowed, TooMany, UsageError, WeftError, shortened
from weft.lanes.eligibility import audience, may_publish
from weft.lanes.hot_subjects import Findings
from weft.lanes.hotness import LATELY_NS, Heat, heat_of, is_cold
from weft.lanes.negotiation import LaneTalk
from weft.lanes.route_state import LIVE_PER_PEER_MAX, Cause, LaneRoute, RouteState
from weft.lanes.settings import LaneSettings
from weft.wire.lane_messages import word_in
from weft.wire.message.message import Message
from weft.wire.subjects import is_reserved, is_subject

# Of a connection with more flows, only the current one is checked.
FLOWS_LOOKED_AT = 64
# Plausible messages per second of one route; larger counts are cut to this.
COUNTED_MAX_S = 10_000_000
# Flows in one control message: as many as can be direct, and some that just were.
COUNTS_MAX = 256
# Time after the end of lanes in which counts of them are still accepted.
LATE_NS = 5_000_000_000
# Time after which a route that is no longer hot is forgotten.
REMEMBERED_NS = 60_000_000_000

_ASKED_FOR = "requested by its publisher"
_LOCAL = b"_LOCAL."
_S = 1_000_000_000


class LaneCoordinator(Laning):
    """Lanes of one service; `look` returns the host that a connection comes from."""

    def __init__(self, service: Service, look: Callable[[Peer], str]) -> None:
        self.service = service
        self.talk = LaneTalk(service, look)
        self.findings = Findings(service)
        talk, pairs = self.talk, self.talk.pairs
        self._words: dict[str, Callable[[Peer, bytes, Message], None]] = {
            "ready": lambda peer, _, facts: talk.ready(peer, facts),
            "no": lambda peer, _, facts: talk.refuse(peer, facts),
            "direct": lambda peer, subject, _: self._direct(peer, subject),
            "declined": talk.decline,
            "withdrawn": lambda peer, subject, _: talk.withdrawn(peer, subject),
            "switch": lambda peer, _, facts: pairs.switch(peer, facts),
            "tail": lambda peer, _, facts: pairs.tail(peer, facts),
            "end": lambda peer, _, facts: pairs.end(peer, facts),
            "counts": lambda peer, _, facts: self._count(peer, facts),
        }

    @property
    def settings(self) -> LaneSettings:
        """Current settings; new ones apply from the next tick on."""
        return self.talk.settings

    @settings.setter
    def settings(self, settings: LaneSettings) -> None:
        self.talk.settings = settings

    def take(self, peer: Peer, subject: bytes, frame: bytes) -> None:
        """Handle a LANE frame; see Laning."""
        word, facts = word_in(frame)
        act = self._words.get(word)
        if act is None:
            raise UsageError(f"{shortened(word)} is not one of {', '.join(self._words)}")
        act(peer, subject, facts)

    def pass_tail(self, peer: Peer, at: int) -> WeftError | None:
        """Relay a message that a lane did not deliver; see Laning."""
        return self.talk.pairs.pass_tail(peer, at)

    def subscribed(self, peer: Peer) -> None:
        """Delay the OK of a peer if messages to its new subscription still bypass the gateway."""
        for route in self.talk.routes.live():
            self.talk.check(route, peer)

    def unsubscribed(self) -> None:
        """End the lanes of receivers that unsubscribed, before they can subscribe again."""
        self.look_at_routes()

    def holds(self, peer: Peer) -> bool:
        """Return whether OKs to a peer are delayed."""
        return peer in self.talk.answers

    def hold(self, peer: Peer, frames: bytes) -> None:
        """Send frames to a peer as soon as its OKs are no longer delayed."""
        self.talk.answers.hold(peer, frames)

    def look_at_routes(self) -> None:
        """End the lanes of routes whose receivers changed."""
        for route in self.talk.routes.live():
            self.talk.check(route, None)

    def look_at_rights(self) -> None:
        """Close the lanes of connections that lost the permission to use them."""
        for route in self.talk.routes.live():
            receivers = [each.peer for each in route.receivers.values()]
            is_allowed = may_publish(route.publisher, route.subject)
            for peer in receivers:
                if not is_allowed:
                    reason = f"{route.publisher.name} may not publish to it any more"
                    self.talk.close(route, peer, reason)
                elif not may_subscribe(peer, route.subject):
                    self.talk.close(route, peer, f"{peer.name} may not subscribe to it any more")
            self.talk.check_answers(route, Cause.RIGHTS)

    def part(self, peer: Peer) -> None:
        """Forget a peer that has ended, and its lanes."""
        self.talk.part(peer)

    def tick(self) -> None:
        """Apply deadlines and look for hot routes; called about once a second."""
        self.findings.tick()
        self.talk.pairs.tick()
        for route in self.talk.routes:
            if not route.publisher.is_over:
                self._look_at(route)
        if self.settings.enabled:
            for peer in list(self.service.peers.values()):
                if peer.lanes and not peer.is_over and peer.meter is not None:
                    self._look_for(peer, peer.meter)

    def ask(self, peer: Peer, subject: bytes) -> LaneRoute:
        """Request lanes for a publisher's subject, whatever its rate; return the route.

        Raises:
            UsageError: invalid subject.
            Refused: not permitted, or over the limit.
        """
        if not is_subject(subject):
            raise BadOption(f"{shortened(subject.decode(errors='replace'))} is not a valid subject")
        if not self.settings.ask:
            raise NotAllowed("publishers may not request lanes here (lanes.ask)")
        if not may_publish(peer, subject):
            raise may_not("publish to", subject)
        pinned = [route for route in self.talk.routes.of(peer.number) if route.is_pinned]
        route = self.talk.routes.begin(peer, subject)
        if route is None or (len(pinned) >= LIVE_PER_PEER_MAX and not route.is_pinned):
            raise TooMany(
                f"lanes were requested for {len(pinned)} subjects, which is over the limit"
            )
        route.is_pinned = True
        if not route.failures:
            # A recent change of receivers is no reason to delay an explicit request.
            route.not_before_ns = 0
        self._look_at(route)
        return route

    def heat(self, subject: bytes, flow: PublisherTraffic | None) -> Heat:
        """The hotness of a connection's messages to a subject."""
        threshold = self.settings.threshold(subject)
        return heat_of(flow, threshold, self.findings.get(subject), self.service.now_ns)

    def why_relayed(self, peer: Peer, subject: bytes, flow: PublisherTraffic | None) -> str:
        """Why a route without lane state goes through the gateway."""
        heat = self.heat(subject, flow)
        if not heat.is_hot:
            return heat.reason
        route = self.service.router.route(subject)
        people = audience(peer, route, self.settings.receivers) if route is not None else ""
        return people if isinstance(people, str) else heat.reason

    def _look_for(self, peer: Peer, meter: Meter) -> None:
        """Track the routes of a connection that are over the threshold."""
        now_ns = self.service.now_ns
        if now_ns - peer.flow.last_ns > LATELY_NS:
            return
        few = len(meter) <= FLOWS_LOOKED_AT
        flows = meter.flows() if few else {peer.subject: peer.flow}
        for subject, flow in flows.items():
            is_system = is_reserved(subject) and not subject.startswith(_LOCAL)
            if is_system or self.talk.routes.get(peer.number, subject) is not None:
                continue
            if self.heat(subject, flow).is_hot:
                route = self.talk.routes.begin(peer, subject)
                if route is not None:
                    self._look_at(route)

    def _look_at(self, route: LaneRoute) -> None:
        now_ns = self.service.now_ns
        peer, subject = route.publisher, route.subject
        flow = flow_of(peer, subject)
        heat = self.heat(subject, flow)
        if route.is_pinned and self.settings.threshold(subject).enabled:
            heat = Heat(True, _ASKED_FOR, is_certain=True)
        if route.state is RouteState.RELAYED:
            self._look_at_relayed(route, heat)
        elif route.state is RouteState.DIRECT:
            self._look_at_direct(route, heat, flow)
        elif now_ns >= route.deadline_ns:
            self.talk.lapse(route)

    def _look_at_relayed(self, route: LaneRoute, heat: Heat) -> None:
        now_ns = self.service.now_ns
        if not heat.is_hot:
            route.hot_ns = 0
            is_old = self.service.wall_ns - route.since_ns > REMEMBERED_NS
            if now_ns >= route.not_before_ns:
                route.reason = heat.reason
                if is_old:
                    self.talk.routes.drop(route)
            return
        route.hot_ns = route.hot_ns or now_ns
        hold_ns = int(self.settings.threshold(route.subject).hold_s * _S)
        is_held = heat.is_certain or now_ns - route.hot_ns >= hold_ns
        if now_ns < route.not_before_ns:
            self.talk.forgive(route)
        elif is_held:
            self.talk.promote(route, heat.reason)
        else:
            route.reason = self.talk.obstacle(route) or f"{heat.reason}, not for long"

    def _look_at_direct(self, route: LaneRoute, heat: Heat, flow: PublisherTraffic | None) -> None:
        now_ns = self.service.now_ns
        threshold = self.settings.threshold(route.subject)
        if not threshold.enabled:
            self.talk.withdraw(route, heat.reason, Cause.SETTINGS)
            return
        if self.service.wall_ns - route.since_ns > self.settings.retry_s * _S:
            # It is stable: count failures from zero again.
            route.failures = 0
        if heat.is_certain or not is_cold(flow, threshold, self.settings.low, now_ns):
            route.cold_ns = 0
            return
        route.cold_ns = route.cold_ns or now_ns
        if now_ns - route.cold_ns >= self.settings.idle_s * _S:
            self.talk.withdraw(route, "rate fell", Cause.RATE)

    def _direct(self, peer: Peer, subject: bytes) -> None:
        """Handle `direct`: a publisher sends by its lanes from now on."""
        self.talk.direct(peer, subject)
        route, flow = self.talk.routes.get(peer.number, subject), flow_of(peer, subject)
        if route is not None:
            route.begin(0 if flow is None else flow.messages)

    def _count(self, peer: Peer, facts: Message) -> None:
        """Count the messages that a publisher reports as sent by lanes."""
        rows = facts.get_list("flows")
        if len(rows) > COUNTS_MAX:
            raise BadOption(f"{len(rows)} flows in one frame are over {COUNTS_MAX}")
        spend(peer, len(rows))
        for row in rows:
            if not isinstance(row, list) or [type(each) for each in row] != [str, int, int]:
                raise BadOption("a flow is a list of a string and two int64")
            if min(row[1:]) < 0:
                raise BadOption(f"{row[1]} messages of {row[2]} bytes cannot have been sent")
            self._count_flow(peer, row[0].encode(), row[1], row[2])

    def _count_flow(self, peer: Peer, subject: bytes, messages: int, size: int) -> None:
        service = self.service
        route = self.talk.routes.get(peer.number, subject)
        if route is None or not self._is_counted(route):
            service.count_refused("NotKnown")
            return
        elapsed_s = max(1.0, (service.now_ns - route.counted_ns) / _S)
        route.counted_ns = service.now_ns
        most = int(COUNTED_MAX_S * elapsed_s)
        if messages > most:
            service.count_refused("TooMany")
            messages = most
        size = min(size, messages * service.run.body_limit)
        begun_flow(peer, subject).record(messages, size, service.now_ns)
        service.total.record(messages, size, service.now_ns)
        service.deliveries += messages * route.width
        route.messages += messages
        route.bytes += size

    def _is_counted(self, route: LaneRoute) -> bool:
        if route.is_proven:
            return True
        return route.direct_ns > 0 and self.service.now_ns - route.direct_ns <= LATE_NS


def flow_of(peer: Peer, subject: bytes) -> PublisherTraffic | None:
    """The traffic of a connection to a subject, if it is metered separately."""
    meter = peer.meter
    if meter is None or not meter.has(subject):
        return None
    return meter.flow(subject, peer.service.now_ns)


def begun_flow(peer: Peer, subject: bytes) -> PublisherTraffic:
    """The flow that counts a connection's messages to a subject, created on first use."""
    service = peer.service
    meter = peer.meter
    if meter is None:
        meter = peer.meter = Meter(service.now_ns, service.limits.flows_per_connection)
    if service.flow_count >= service.limits.flows and not meter.has(subject):
        return meter.others
    before = len(meter)
    flow = meter.flow(subject, service.now_ns)
    service.flow_count += len(meter) - before
    return flow
