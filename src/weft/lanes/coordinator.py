"""Lanes as a service has them: looks for hot routes, and keeps what goes by lanes right.

No clock and no sockets: the service has the time, and whoever made this says from which host a
connection comes and calls tick() about once a second.
"""

from collections.abc import Callable

from weft.broker.auth.permissions import may_not
from weft.broker.lane_hooks import Laning
from weft.broker.metering import Flow, Meter
from weft.broker.rate_limit import spend
from weft.broker.service import Peer, Service
from weft.broker.subscribe import may_subscribe
from weft.errors import BadOption, NotAllowed, TooMany, UsageError, WeftError, shortened
from weft.lanes.eligibility import audience, may_publish
from weft.lanes.hot_subjects import Findings
from weft.lanes.hotness import LATELY_NS, Heat, heat_of, is_cold
from weft.lanes.negotiation import LaneTalk
from weft.lanes.route_state import LIVE_PER_PEER_MAX, Cause, LaneRoute, State
from weft.lanes.settings import LaneSettings
from weft.wire.lane_messages import word_in
from weft.wire.message.message import Message
from weft.wire.subjects import is_reserved, is_subject

# Of a connection with more flows only the one in use is looked at.
FLOWS_LOOKED_AT = 64
# What one route may be said to have sent: more is nonsense.
COUNTED_MAX_S = 10_000_000
# Flows in one word, as many as can be direct and some that just were.
COUNTS_MAX = 256
# What was sent by lanes before they were withdrawn may be told so long after.
LATE_NS = 5_000_000_000
# A route that was hot is remembered this long.
REMEMBERED_NS = 60_000_000_000

_ASKED_FOR = "its publisher asked for it"
_LOCAL = b"_LOCAL."
_S = 1_000_000_000


class Lanes(Laning):
    """The lanes of one service; `look` says from which host a connection comes."""

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
        """What it goes by; other settings count from the next tick on."""
        return self.talk.settings

    @settings.setter
    def settings(self, settings: LaneSettings) -> None:
        self.talk.settings = settings

    def take(self, peer: Peer, subject: bytes, frame: bytes) -> None:
        """Deal with a word; see Laning."""
        word, facts = word_in(frame)
        act = self._words.get(word)
        if act is None:
            raise UsageError(f"{shortened(word)} is none of {', '.join(self._words)}")
        act(peer, subject, facts)

    def pass_tail(self, peer: Peer, at: int) -> WeftError | None:
        """Pass a message that a lane did not bring on; see Laning."""
        return self.talk.pairs.pass_tail(peer, at)

    def subscribed(self, peer: Peer) -> None:
        """Have a peer wait if what it asked for still goes past the gateway."""
        for route in self.talk.routes.live():
            self.talk.check(route, peer)

    def unsubscribed(self) -> None:
        """End the lanes of receivers that are gone, before they can subscribe again."""
        self.look_at_routes()

    def holds(self, peer: Peer) -> bool:
        """Say if a peer has to wait for its answers."""
        return peer in self.talk.answers

    def hold(self, peer: Peer, frames: bytes) -> None:
        """Owe these to a peer that has to wait, as soon as it need not."""
        self.talk.answers.hold(peer, frames)

    def look_at_routes(self) -> None:
        """Subscriptions have changed: end the lanes of routes that have another audience now."""
        for route in self.talk.routes.live():
            self.talk.check(route, None)

    def look_at_rights(self) -> None:
        """Rights have changed: close the lanes of those who may not use them any more."""
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
        """A peer is over: nothing leads to it any more."""
        self.talk.part(peer)

    def tick(self) -> None:
        """Do what time brings, and look for routes that are hot; about once a second."""
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
        """A publisher wants lanes, whatever it sends; what has come of it so far.

        Raises:
            UsageError: it is no subject.
            Refused: it may not, or there are too many.
        """
        if not is_subject(subject):
            raise BadOption(f"{shortened(subject.decode(errors='replace'))} is no legal subject")
        if not self.settings.ask:
            raise NotAllowed("publishers may not ask for lanes here")
        if not may_publish(peer, subject):
            raise may_not("publish to", subject)
        pinned = [route for route in self.talk.routes.of(peer.number) if route.is_pinned]
        route = self.talk.routes.begin(peer, subject)
        if route is None or (len(pinned) >= LIVE_PER_PEER_MAX and not route.is_pinned):
            raise TooMany(f"lanes were asked for {len(pinned)} subjects, which is too many")
        route.is_pinned = True
        if not route.failures:
            # Who gets it has changed a moment ago, which is no reason to make anybody wait.
            route.not_before_ns = 0
        self._look_at(route)
        return route

    def heat(self, subject: bytes, flow: Flow | None) -> Heat:
        """How hot what a connection publishes to a subject is."""
        threshold = self.settings.threshold(subject)
        return heat_of(flow, threshold, self.findings.get(subject), self.service.now_ns)

    def why_relayed(self, peer: Peer, subject: bytes, flow: Flow | None) -> str:
        """Why a route that nobody looked at yet, or that failed, goes through the gateway."""
        heat = self.heat(subject, flow)
        if not heat.is_hot:
            return heat.reason
        route = self.service.router.route(subject)
        people = audience(peer, route, self.settings.receivers) if route is not None else ""
        return people if isinstance(people, str) else heat.reason

    def _look_for(self, peer: Peer, meter: Meter) -> None:
        """Begin to watch routes of a connection that are over the threshold."""
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
        if route.state is State.RELAYED:
            self._look_at_relayed(route, heat)
        elif route.state is State.DIRECT:
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

    def _look_at_direct(self, route: LaneRoute, heat: Heat, flow: Flow | None) -> None:
        now_ns = self.service.now_ns
        threshold = self.settings.threshold(route.subject)
        if not threshold.enabled:
            self.talk.withdraw(route, heat.reason, Cause.SETTINGS)
            return
        if self.service.wall_ns - route.since_ns > self.settings.retry_s * _S:
            # It works: the next failure is the first again.
            route.failures = 0
        if heat.is_certain or not is_cold(flow, threshold, self.settings.low, now_ns):
            route.cold_ns = 0
            return
        route.cold_ns = route.cold_ns or now_ns
        if now_ns - route.cold_ns >= self.settings.idle_s * _S:
            self.talk.withdraw(route, "rate fell", Cause.RATE)

    def _direct(self, peer: Peer, subject: bytes) -> None:
        """A publisher has gone direct."""
        self.talk.direct(peer, subject)
        route, flow = self.talk.routes.get(peer.number, subject), flow_of(peer, subject)
        if route is not None:
            route.begin(0 if flow is None else flow.messages)

    def _count(self, peer: Peer, facts: Message) -> None:
        """Count what a publisher says that it sent by lanes."""
        rows = facts.get_list("flows")
        if len(rows) > COUNTS_MAX:
            raise BadOption(f"{len(rows)} flows in one word are over {COUNTS_MAX}")
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


def flow_of(peer: Peer, subject: bytes) -> Flow | None:
    """What a connection sent to a subject, if that is known apart from others."""
    meter = peer.meter
    if meter is None or not meter.has(subject):
        return None
    return meter.flow(subject, peer.service.now_ns)


def begun_flow(peer: Peer, subject: bytes) -> Flow:
    """Where what a connection sends to a subject is counted."""
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
