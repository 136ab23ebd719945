"""The conversation that brings a route to lanes, and back.

Everybody who is to get the route is invited; once all of them are ready the publisher is offered
lanes to all of them, and may take them or not. Whatever changes who must get the route ends it.
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
from weft.lanes.route_state import Cause, LaneRoute, LaneRoutes, Receiver, State
from weft.lanes.settings import LaneSettings
from weft.wire.lane_addresses import is_encrypted, is_unix_name, may_be_told
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import TICKET_S, Ticket, sign
from weft.wire.message.message import Message

# How long receivers may take to answer an invitation, and publishers an offer.
INVITE_S = 5.0
OFFER_S = 10.0
# How long a publisher may take to come back if somebody misses what it sends until then, and if
# nobody does.
WITHDRAW_S = 3.0
PATIENCE_S = 30.0
# A route whose audience has changed may be on lanes again after this, others after retry_s.
CHANGED_S = 1.0
RETRY_MAX_S = 600.0
REASON_MAX = 120

_S = 1_000_000_000


class LaneTalk:
    """What is said about lanes with the connections of a service, and where that leaves routes."""

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
        """Invite everybody who is to get a hot route; or find out why there are no lanes to them.

        Reasons that may be gone in a moment are looked at again in a moment.
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
        self.routes.become(route, State.ASKED, why)

    def ready(self, peer: Peer, facts: Message) -> None:
        """A receiver says where it listens."""
        ticket, port = facts.get_blob("ticket"), facts.get_int64("port")
        unix = facts.get_string("unix")
        if unix and not is_unix_name(unix):
            # It could be anybody's on the machine of the publisher.
            raise BadOption(f"{shortened(unix)} is not the name of a listener for lanes")
        route, receiver = self._answering(peer, ticket)
        if route is None or receiver is None:
            # Too late, and nobody waits for it.
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
        """A receiver says that there is no lane to it."""
        reason = _reason_in(facts)
        route, _ = self._answering(peer, facts.get_blob("ticket"))
        if route is not None:
            self._fail(route, f"receiver {peer.name} declined: {reason}")

    def direct(self, peer: Peer, subject: bytes) -> None:
        """A publisher has gone direct."""
        route = self._of(peer, subject)
        if route.state is State.OFFERED:
            self._prove(route)
            self.promotions += 1
            self.routes.become(route, State.DIRECT, route.reason)
            self.check(route, None)
        elif route.state is State.WITHDRAWING and not route.is_proven:
            # It was told to come back at the same moment; it will say that it did.
            self._prove(route)
            route.deadline_ns = self._after(WITHDRAW_S)
        elif route.is_lapsed:
            end_with(
                peer, TooSlow(f"direct for {_shown(subject)}, long after it was to be withdrawn")
            )
        elif not route.is_proven:
            # Nobody knows where its messages go now.
            peer.owe(lane_frame("withdraw", subject, reason="there is no offer"))
            raise UsageError(f"there is no offer of lanes for {_shown(subject)}")

    def decline(self, peer: Peer, subject: bytes, facts: Message) -> None:
        """A publisher does not take an offer up, or gives lanes up."""
        reason = _reason_in(facts)
        route = self._of(peer, subject)
        if route.state is State.WITHDRAWING:
            self.finish(route, route.reason)
        elif route.state is State.DIRECT:
            self.demotions[Cause.PUBLISHER] += 1
            self._fail(route, reason)
        elif route.state is State.OFFERED:
            self._fail(route, f"the publisher declined: {reason}")

    def withdrawn(self, peer: Peer, subject: bytes) -> None:
        """A publisher is back: everything after this comes through the gateway."""
        route = self._of(peer, subject)
        if route.state is State.WITHDRAWING:
            self.finish(route, route.reason)
        elif route.state is State.DIRECT:
            self.demotions[Cause.PUBLISHER] += 1
            self._fail(route, "the publisher came back by itself")
        elif route.state is State.OFFERED:
            self._fail(route, "the publisher declined")

    def withdraw(self, route: LaneRoute, reason: str, cause: Cause) -> None:
        """Have a publisher publish through the gateway again."""
        if route.state is State.ASKED:
            self._back(route, reason, cause)
            return
        if route.state not in (State.OFFERED, State.DIRECT):
            return
        if route.state is State.DIRECT:
            self.demotions[cause] += 1
        self._pause(route, cause)
        route.publisher.owe(lane_frame("withdraw", route.subject, reason=reason))
        is_missed = cause in (Cause.AUDIENCE, Cause.RIGHTS) or not route.is_proven
        route.deadline_ns = self._after(WITHDRAW_S if is_missed else PATIENCE_S)
        self.routes.become(route, State.WITHDRAWING, reason)

    def finish(self, route: LaneRoute, reason: str) -> None:
        """A route is at the gateway again: whoever waited for that hears it."""
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
        self.routes.become(route, State.RELAYED, reason)
        self.answers.release(route)

    def lapse(self, route: LaneRoute) -> None:
        """Somebody did not say in time what it was to say."""
        subject = _shown(route.subject)
        if route.state is State.ASKED:
            silent = [each.peer.name for each in route.receivers.values() if not each.is_ready]
            self._fail(route, f"receiver {', '.join(silent)} did not answer")
        elif route.state is State.OFFERED:
            reason = "the publisher did not answer"
            self._note_failure(route, reason)
            self.withdraw(route, reason, Cause.PUBLISHER)
        elif route.is_proven:
            text = f"lanes for {subject} were to be withdrawn, and were not in time"
            end_with(route.publisher, TooSlow(text))
        else:
            # Whoever takes no notice of offers takes none of this: it never left.
            route.is_lapsed = True
            self.finish(route, route.reason)

    def check(self, route: LaneRoute, subscriber: Peer | None) -> None:
        """Subscriptions have changed: end a route's lanes if it has another audience now.

        A subscriber that is to get what still goes by lanes waits until it does not.
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
            and route.state is State.WITHDRAWING
            and (subscriber.number not in route.receivers or subscriber.number in route.left)
            and _hears(route.route, subscriber)
        ):
            self.answers.wait(subscriber, route)
            route.deadline_ns = min(route.deadline_ns, self._after(WITHDRAW_S))

    def close(self, route: LaneRoute, receiver: Peer, reason: str) -> None:
        """Somebody lost a right: close its lane at once, and everything that goes by it."""
        self.withdraw(route, reason, Cause.RIGHTS)
        sender = route.publisher
        for other in self.routes.live():
            if (other.publisher is sender and receiver.number in other.receivers) or (
                other.publisher is receiver and sender.number in other.receivers
            ):
                self.withdraw(other, f"the lane was closed: {reason}", Cause.RIGHTS)
        self.pairs.close(sender, receiver, reason)

    def part(self, peer: Peer) -> None:
        """A connection is over."""
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
        """End a route's lanes if others may be asked now than those that its publisher was told."""
        for receiver in route.receivers.values():
            if receiver.answers != self._answers(route, receiver.peer):
                self.withdraw(route, f"{receiver.peer.name} answers otherwise now", cause)
                return

    def _answers(self, route: LaneRoute, receiver: Peer) -> bool:
        """Say if a receiver may be asked by the publisher of a route."""
        is_responder = receiver.outbox in route.route.responders
        return is_responder and may_request(route.publisher, route.subject)

    def _invite(self, route: LaneRoute, peer: Peer) -> Receiver:
        service, publisher = self._service, route.publisher
        self._tickets += 1
        ends_ns = service.wall_ns + int(TICKET_S * _S)
        numbers = publisher.number, peer.number
        made = Ticket(service.name, *numbers, route.subject, ends_ns, self._tickets).encode()
        hosts = self.claims.host(publisher), self.claims.host(peer)
        encrypts = self.settings.encrypt == "always" or is_encrypted(*hosts)
        receiver = Receiver(peer, made, sign(service.secret, made), encrypts)
        receiver.answers = self._answers(route, peer)
        self._invited[made] = route
        peer.owe(invitation(route, receiver))
        return receiver

    def _prove(self, route: LaneRoute) -> None:
        """A publisher goes by all its lanes from now on."""
        route.is_proven = True
        route.width = len(route.receivers)
        route.counted_ns = self._service.now_ns
        route.cold_ns = 0
        for receiver in route.receivers.values():
            self.pairs.use(route.publisher, receiver.peer)

    def _offer(self, route: LaneRoute) -> None:
        """Tell a publisher its whole audience, and how each of them is reached."""
        self.check(route, None)
        if route.state is not State.ASKED:
            return
        for each in route.receivers.values():
            self.pairs.open(route.publisher, each.peer)
        route.publisher.owe(offer(route))
        route.deadline_ns = self._after(OFFER_S)
        self.routes.become(route, State.OFFERED, route.reason)

    def _answering(self, peer: Peer, ticket: bytes) -> tuple[LaneRoute | None, Receiver | None]:
        """The route that a receiver answers an invitation for, and what is known of it there."""
        route = self._invited.get(ticket)
        if route is None or route.state is not State.ASKED:
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
        if route.is_pinned and route.state is State.ASKED:
            # Whoever asked for lanes waits for them, or for why there are none.
            route.publisher.owe(lane_frame("withdraw", route.subject, reason=reason))
        self._pause(route, cause)
        self.finish(route, reason)

    def _no_address(self, peer: Peer) -> str:
        if not self.claims.host(peer):
            return f"receiver {peer.name} did not come by TCP"
        return f"no address of {peer.name} that the publisher may be told"

    def forgive(self, route: LaneRoute) -> None:
        """Have a route that failed be tried soon, if others are to get it now than then."""
        if route.failures and route.failed_with != self._numbers(route):
            route.failures = 0
            self._pause(route, Cause.AUDIENCE)

    def obstacle(self, route: LaneRoute) -> str:
        """Why there can be no lanes for a route at all; or empty."""
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
        """Have a route stay at the gateway for a while: longer each time that it failed."""
        pause_s = CHANGED_S
        if cause is not Cause.AUDIENCE:
            retry_s = self.settings.retry_s * 2.0 ** max(0, route.failures - 1)
            pause_s = min(retry_s, max(RETRY_MAX_S, self.settings.retry_s))
        route.not_before_ns = self._after(pause_s)

    def _after(self, seconds: float) -> int:
        return self._service.now_ns + int(seconds * _S)


def _hears(route: Route, peer: Peer) -> bool:
    """Say if what goes by a route may come to a peer."""
    outbox = peer.outbox
    return outbox in route.outboxes or any(outbox in group.members for group in route.groups)


def _reason_in(facts: Message) -> str:
    return facts.get_string("reason")[:REASON_MAX]


def _shown(subject: bytes) -> str:
    return shortened(subject.decode(errors="replace"))
