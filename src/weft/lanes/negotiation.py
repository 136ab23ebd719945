"""Negotiation that moves a route to lanes and back to the gateway.

All receivers of the route are invited. Once all are ready, the publisher is offered lanes to all of
them, and accepts or declines. Any change of the receivers ends the lanes.
"""

from collections import Counter
from collections.abc import Callable

from weft.broker.replies import end_with
from weft.broker.routing.route import Route
from weft.broker.service import NOWHERE, Peer, Service
from weft.errors import BadOption, Refused, TooSlow, UsageError, shortened
from weft.lanes.eligibility import audience, may_request
from weft.lanes.held_replies import LaneAnswers
from weft.lanes.offer import invitation, offer
from weft.lanes.pairs import LanePairs
from weft.lanes.reachable_at import LaneClaims
from weft.lanes.route_state import Cause, LaneReceiver, LaneRoute, LaneRoutes, RouteState
from weft.lanes.settings import LaneSettings
from weft.wire.lane_addresses import is_encrypted, is_unix_name, may_be_told
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import TICKET_S, Ticket, sign
from weft.wire.message.message import Message

# Deadlines for receivers to answer an invitation, and for publishers to answer an offer.
INVITE_S = 5.0
OFFER_S = 10.0
# Deadlines for a publisher to return to the gateway: if a subscriber misses its messages until
# then, and otherwise.
WITHDRAW_S = 3.0
PATIENCE_S = 30.0
# Pause before the next attempt after a change of receivers; after other causes it is retry_s.
CHANGED_S = 1.0
RETRY_MAX_S = 600.0
REASON_MAX = 120

_S = 1_000_000_000


class LaneTalk:
    """Lane negotiations of one service, and the state of its routes."""

    def __init__(self, service: Service, look: Callable[[Peer], str]) -> None:
        self._service = service
        self.settings = LaneSettings()
        self.routes = LaneRoutes()
        self.pairs = LanePairs(service)
        self.answers = LaneAnswers(service)
        self.claims = LaneClaims(look)
        self.promotions = 0
        self.demotions: Counter[str] = Counter()
        self._tickets = 0
        self._invited: dict[bytes, LaneRoute] = {}

    def promote(self, route: LaneRoute, why: str) -> None:
        """Invite all receivers of a hot route, or record why lanes are impossible.

        Called again in each tick, so that transient obstacles are checked again.
        """
        publisher = route.publisher
        people = self._audience(route)
        if isinstance(people, str):
            route.reason = people
            return
        route.reason = self.routes.no_room(publisher)
        if route.reason:
            return
        sender_host = self.claims.host(publisher)
        for peer in people:
            if not may_be_told(sender_host, self.claims.host(peer)):
                self._fail(route, self._no_address(peer))
                return
        route.route = self._found(route)
        route.is_proven = route.is_lapsed = False
        route.receivers = {peer.number: self._invite(route, peer) for peer in people}
        route.left.clear()
        route.deadline_ns = self._after(INVITE_S)
        if route.failures:
            why = f"{why}; attempt {route.failures + 1}, the last failed: {route.failure}"
        self.routes.become(route, RouteState.ASKED, why)

    def ready(self, peer: Peer, facts: Message) -> None:
        """Handle `ready`: a receiver reports its address."""
        ticket, port = facts.get_blob("ticket"), facts.get_int64("port")
        unix = facts.get_string("unix")
        if unix and not is_unix_name(unix):
            # It could be any other socket on the publisher's machine.
            raise BadOption(f"{shortened(unix)} is not the name of a listener for lanes")
        route, receiver = self._answering(peer, ticket)
        if route is None or receiver is None:
            # Too late: the invitation is over.
            return
        try:
            if port:
                receiver.address = self.claims.claim(peer, port)
        except (Refused, UsageError) as error:
            self._fail(route, f"no address of {peer.name}: {error}")
            raise
        if self.claims.host(peer) == self.claims.host(route.publisher):
            receiver.unix = unix
        if not receiver.address and not receiver.unix:
            self._fail(route, self._no_address(peer))
            return
        receiver.is_ready = True
        if all(each.is_ready for each in route.receivers.values()):
            self._offer(route)

    def refuse(self, peer: Peer, facts: Message) -> None:
        """Handle `no`: a receiver declines an invitation."""
        reason = _reason_in(facts)
        route, _ = self._answering(peer, facts.get_blob("ticket"))
        if route is not None:
            self._fail(route, f"receiver {peer.name} declined: {reason}")

    def direct(self, peer: Peer, subject: bytes) -> None:
        """Handle `direct`: a publisher sends by its lanes from now on."""
        route = self._of(peer, subject)
        if route.state is RouteState.OFFERED:
            self._prove(route)
            self.promotions += 1
            self.routes.become(route, RouteState.DIRECT, route.reason)
            self.check(route, None)
        elif route.state is RouteState.WITHDRAWING and not route.is_proven:
            # It crossed our `withdraw`; its `withdrawn` will follow.
            self._prove(route)
            route.deadline_ns = self._after(WITHDRAW_S)
        elif route.is_lapsed:
            end_with(peer, TooSlow(f"direct for {_shown(subject)}, after its offer expired"))
        elif not route.is_proven:
            # The gateway does not know where its messages go.
            peer.owe(lane_frame("withdraw", subject, reason="there is no offer"))
            raise UsageError(f"there is no offer of lanes for {_shown(subject)}")

    def decline(self, peer: Peer, subject: bytes, facts: Message) -> None:
        """Handle `declined`: a publisher declines an offer, or gives up its lanes."""
        reason = _reason_in(facts)
        route = self._of(peer, subject)
        if route.state is RouteState.WITHDRAWING:
            self.finish(route, route.reason)
        elif route.state is RouteState.DIRECT:
            self.demotions[Cause.PUBLISHER] += 1
            self._fail(route, reason)
        elif route.state is RouteState.OFFERED:
            self._fail(route, f"the publisher declined: {reason}")

    def withdrawn(self, peer: Peer, subject: bytes) -> None:
        """Handle `withdrawn`: all later messages of a publisher come through the gateway."""
        route = self._of(peer, subject)
        if route.state is RouteState.WITHDRAWING:
            self.finish(route, route.reason)
        elif route.state is RouteState.DIRECT:
            self.demotions[Cause.PUBLISHER] += 1
            self._fail(route, "the publisher returned by itself")
        elif route.state is RouteState.OFFERED:
            self._fail(route, "the publisher declined")

    def withdraw(self, route: LaneRoute, reason: str, cause: Cause) -> None:
        """Request a publisher to return to the gateway."""
        if route.state is RouteState.ASKED:
            self._back(route, reason, cause)
            return
        if route.state not in (RouteState.OFFERED, RouteState.DIRECT):
            return
        if route.state is RouteState.DIRECT:
            self.demotions[cause] += 1
        self._pause(route, cause)
        route.publisher.owe(lane_frame("withdraw", route.subject, reason=reason))
        is_missed = cause in (Cause.AUDIENCE, Cause.RIGHTS) or not route.is_proven
        route.deadline_ns = self._after(WITHDRAW_S if is_missed else PATIENCE_S)
        self.routes.become(route, RouteState.WITHDRAWING, reason)

    def finish(self, route: LaneRoute, reason: str) -> None:
        """Mark a route as relayed again, and release the replies held for it."""
        for receiver in route.receivers.values():
            self._invited.pop(receiver.ticket, None)
            if not route.is_proven:
                self.pairs.abandon(route.publisher, receiver.peer)
        if route.is_proven:
            route.direct_ns = self._service.now_ns
        route.is_proven = False
        route.receivers = {}
        route.route = NOWHERE
        route.hot_ns = route.cold_ns = 0
        self.routes.become(route, RouteState.RELAYED, reason)
        self.answers.release(route)

    def lapse(self, route: LaneRoute) -> None:
        """Handle a missed deadline of a route."""
        subject = _shown(route.subject)
        if route.state is RouteState.ASKED:
            silent = [each.peer.name for each in route.receivers.values() if not each.is_ready]
            self._fail(route, f"receiver {', '.join(silent)} did not answer")
        elif route.state is RouteState.OFFERED:
            reason = "the publisher did not answer"
            self._note_failure(route, reason)
            self.withdraw(route, reason, Cause.PUBLISHER)
        elif route.is_proven:
            text = f"lanes for {subject} were not withdrawn in time"
            end_with(route.publisher, TooSlow(text))
        else:
            # It ignored the offer, so its messages never left the gateway.
            route.is_lapsed = True
            self.finish(route, route.reason)

    def check(self, route: LaneRoute, subscriber: Peer | None) -> None:
        """End the lanes of a route if subscriptions changed its receivers.

        A subscriber that needs messages still sent by lanes has its OK delayed until they are not.
        """
        if route.route.is_stale:
            route.route = self._found(route)
            gone = [
                each.peer for each in route.receivers.values() if not _hears(route.route, each.peer)
            ]
            route.left.update(peer.number for peer in gone)
            self._compare(route)
        if (
            subscriber is not None
            and route.state is RouteState.WITHDRAWING
            and (subscriber.number not in route.receivers or subscriber.number in route.left)
            and _hears(route.route, subscriber)
        ):
            self.answers.wait(subscriber, route)
            route.deadline_ns = min(route.deadline_ns, self._after(WITHDRAW_S))

    def close(self, route: LaneRoute, receiver: Peer, reason: str) -> None:
        """Close the lane of a connection that lost a permission, and end all routes that use it."""
        self.withdraw(route, reason, Cause.RIGHTS)
        sender = route.publisher
        for other in self.routes.live():
            if (other.publisher is sender and receiver.number in other.receivers) or (
                other.publisher is receiver and sender.number in other.receivers
            ):
                self.withdraw(other, f"the lane was closed: {reason}", Cause.RIGHTS)
        self.pairs.close(sender, receiver, reason)

    def part(self, peer: Peer) -> None:
        """Forget a connection that has ended, and end its lanes."""
        self.claims.forget(peer)
        self.answers.forget(peer)
        reason = f"{peer.name} is gone"
        for route in self.routes.of(peer.number):
            self.finish(route, reason)
            self.routes.drop(route)
        for route in self.routes.live():
            if peer.number in route.receivers:
                self.withdraw(route, f"receiver {reason}", Cause.AUDIENCE)
        self.pairs.part(peer, reason)

    def _compare(self, route: LaneRoute) -> None:
        people = audience(route.publisher, route.route, self.settings.receivers)
        if isinstance(people, str):
            self.withdraw(route, people, Cause.AUDIENCE)
            return
        now = {peer.number: peer for peer in people}
        came = [peer.name for number, peer in now.items() if number not in route.receivers]
        if came:
            self.withdraw(route, f"{', '.join(came)} subscribed", Cause.AUDIENCE)
        elif len(now) < len(route.receivers):
            self.withdraw(route, "a receiver unsubscribed", Cause.AUDIENCE)
        else:
            self.check_answers(route, Cause.AUDIENCE)

    def check_answers(self, route: LaneRoute, cause: Cause) -> None:
        """End the lanes of a route if the permission to send requests to a receiver changed."""
        for receiver in route.receivers.values():
            if receiver.answers != self._answers(route, receiver.peer):
                self.withdraw(route, f"{receiver.peer.name} changed how it answers requests", cause)
                return

    def _answers(self, route: LaneRoute, receiver: Peer) -> bool:
        """Return whether the publisher of a route may send requests to a receiver."""
        is_responder = receiver.outbox in route.route.responders
        return is_responder and may_request(route.publisher, route.subject)

    def _invite(self, route: LaneRoute, peer: Peer) -> LaneReceiver:
        service, publisher = self._service, route.publisher
        self._tickets += 1
        ends_ns = service.wall_ns + int(TICKET_S * _S)
        numbers = publisher.number, peer.number
        made = Ticket(service.name, *numbers, route.subject, ends_ns, self._tickets).encode()
        hosts = self.claims.host(publisher), self.claims.host(peer)
        encrypts = self.settings.encrypt == "always" or is_encrypted(*hosts)
        receiver = LaneReceiver(peer, made, sign(service.secret, made), encrypts)
        receiver.answers = self._answers(route, peer)
        self._invited[made] = route
        peer.owe(invitation(route, receiver))
        return receiver

    def _prove(self, route: LaneRoute) -> None:
        """Record that a publisher uses all lanes of a route from now on."""
        route.is_proven = True
        route.width = len(route.receivers)
        route.counted_ns = self._service.now_ns
        route.cold_ns = 0
        for receiver in route.receivers.values():
            self.pairs.use(route.publisher, receiver.peer)

    def _offer(self, route: LaneRoute) -> None:
        """Offer a publisher lanes to all its receivers."""
        self.check(route, None)
        if route.state is not RouteState.ASKED:
            return
        for each in route.receivers.values():
            self.pairs.open(route.publisher, each.peer)
        route.publisher.owe(offer(route))
        route.deadline_ns = self._after(OFFER_S)
        self.routes.become(route, RouteState.OFFERED, route.reason)

    def _answering(self, peer: Peer, ticket: bytes) -> tuple[LaneRoute | None, LaneReceiver | None]:
        """The route and receiver of an open invitation that this peer answers."""
        route = self._invited.get(ticket)
        if route is None or route.state is not RouteState.ASKED:
            return None, None
        receiver = route.receivers.get(peer.number)
        if receiver is None or receiver.ticket != ticket:
            return None, None
        return route, receiver

    def _of(self, peer: Peer, subject: bytes) -> LaneRoute:
        route = self.routes.get(peer.number, subject)
        return LaneRoute(peer, subject) if route is None else route

    def _found(self, route: LaneRoute) -> Route:
        return self._service.router.route(route.subject) or NOWHERE

    def _fail(self, route: LaneRoute, reason: str) -> None:
        self._note_failure(route, reason)
        self._back(route, reason, Cause.PUBLISHER)

    def _back(self, route: LaneRoute, reason: str, cause: Cause) -> None:
        if route.is_pinned and route.state is RouteState.ASKED:
            # A publisher that requested lanes waits for them, or for the reason.
            route.publisher.owe(lane_frame("withdraw", route.subject, reason=reason))
        self._pause(route, cause)
        self.finish(route, reason)

    def _no_address(self, peer: Peer) -> str:
        if not self.claims.host(peer):
            return f"receiver {peer.name} is not connected by TCP"
        return f"no address of {peer.name} that the publisher may know"

    def forgive(self, route: LaneRoute) -> None:
        """Shorten the pause of a failed route if its receivers have changed since."""
        if route.failures and route.failed_with != self._numbers(route):
            route.failures = 0
            self._pause(route, Cause.AUDIENCE)

    def obstacle(self, route: LaneRoute) -> str:
        """The reason why lanes are impossible for a route, or empty."""
        people = self._audience(route)
        return people if isinstance(people, str) else ""

    def _note_failure(self, route: LaneRoute, reason: str) -> None:
        route.failures += 1
        route.failure = reason
        route.failed_with = self._numbers(route)

    def _numbers(self, route: LaneRoute) -> frozenset[int]:
        people = self._audience(route)
        return frozenset() if isinstance(people, str) else frozenset(peer.number for peer in people)

    def _audience(self, route: LaneRoute) -> list[Peer] | str:
        return audience(route.publisher, self._found(route), self.settings.receivers)

    def _pause(self, route: LaneRoute, cause: Cause) -> None:
        """Keep a route at the gateway for a while: longer after each failure."""
        pause_s = CHANGED_S
        if cause is not Cause.AUDIENCE:
            retry_s = self.settings.retry_s * 2.0 ** max(0, route.failures - 1)
            pause_s = min(retry_s, max(RETRY_MAX_S, self.settings.retry_s))
        route.not_before_ns = self._after(pause_s)

    def _after(self, seconds: float) -> int:
        return self._service.now_ns + int(seconds * _S)


def _hears(route: Route, peer: Peer) -> bool:
    """Return whether a route may deliver to a peer."""
    outbox = peer.outbox
    return outbox in route.outboxes or any(outbox in group.members for group in route.groups)


def _reason_in(facts: Message) -> str:
    return facts.get_string("reason")[:REASON_MAX]


def _shown(subject: bytes) -> str:
    return shortened(subject.decode(errors="replace"))
