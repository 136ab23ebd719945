"""Message traffic of one gateway with the mesh: sending, receiving, paths and retransmission.

Membership is maintained elsewhere: the owner reports gateways, their interest and the topology.
"""

from collections.abc import Callable, Container, Iterable
from itertools import pairwise

from weft.broker.delivery.policy import Policy
from weft.broker.requests import expire_requests, forget_requests
from weft.broker.routing.router import SubscriberKind as Asked
from weft.broker.service import FAR_INBOX_BYTES, Peer, Service
from weft.errors import BadWord
from weft.mesh.counters import TrafficCounts
from weft.mesh.delivery.link_receiver import LinkCarrier
from weft.mesh.delivery.lost_requests import LostRequests
from weft.mesh.delivery.receiver import Arrivals
from weft.mesh.delivery.remote_gateway import EPOCH_BITS, EPOCH_MAX, RemoteGateway
from weft.mesh.delivery.remote_transport import Post
from weft.mesh.delivery.sender import MeshSender
from weft.mesh.protocol import (
    Ack,
    Gone,
    HighWaterMark,
    InterestEntry,
    LostRanges,
    Nack,
    RoutedWord,
    Trace,
    Word,
    decode,
)
from weft.mesh.routing.forward_header import HOPS_AT, mark_of
from weft.mesh.routing.forwarding_tree import Ways
from weft.mesh.trace.hop import Sprout, TracedHop
from weft.wire.byteops import u32_at
from weft.wire.subjects import stays_here

# After this time without frames to a gateway, it gets a mark: the last number sent.
QUIET_NS = 250_000_000
# Interval of marks while frames are sent continuously.
BUSY_MARK_NS = 1_000_000_000
# Longest interval between marks that are not acknowledged; it doubles up to this.
MARK_MAX_NS = 4_000_000_000
# Least interval between retransmissions to one gateway.
RESEND_NS = 20_000_000
# Bound on the bytes of one retransmission.
RESEND_BYTES = 8 << 20
# Bound on cached checks of paths.
PATHS_MAX = 65_536
# Bound on the forgotten gateways whose epoch is remembered.
EPOCHS_MAX = 65_536

_CUT = int(Policy.CUT)
_S = 1_000_000_000


class Traffic:
    """Messages between this gateway and all others."""

    def __init__(self, service: Service, *, is_relay: bool = True) -> None:
        self._service = service
        self.counts = TrafficCounts()
        self.is_relay = is_relay
        self._outgoing = MeshSender(service, self.counts)
        self._distants = self._outgoing.distants
        self._arrivals = Arrivals(service, self.counts, self._distants, self.send_word)
        self._refusals = LostRequests(self._distants, self._outgoing.ring)
        self._edges: Container[tuple[int, int]] = frozenset()
        self._paths: dict[bytes, str] = {}
        # Epochs of forgotten gateways: one that returns starts the next.
        self._epochs: dict[int, int] = {}
        self._own: dict[tuple[bytes, bytes], bool] = {}
        # Path back to each gateway, from its last control message, nearest first.
        self._came_by: dict[int, list[int]] = {}
        self._marks_ns = 0
        self._swept_ns = 0
        # Handlers of control messages about the mesh itself.
        self.on_near: Callable[[Peer, bytes], None] | None = None
        self.on_word: Callable[[int, Word], None] | None = None
        self.on_trace: Callable[[int, Trace, TracedHop], None] | None = None
        self.on_part: Callable[[Peer], None] | None = None
        service.beyond = self._outgoing
        service.router.changes = {}

    # Membership, interest and topology.

    def carrier(self, number: int, peer: Peer) -> LinkCarrier:
        """Return the receiver for a link."""
        return LinkCarrier(peer, number, self._outgoing, self._arrivals, self)

    def meet(self, number: int, name: str) -> None:
        """Add a gateway."""
        if number in self._distants or number == self._outgoing.own:
            return
        post = Post(self._outgoing)
        inbox = f"_INBOX.{number:08x}.".encode()
        peer = Peer(self._service, number, inbox, post)
        post.peer = peer
        peer.name = name
        peer.is_greeted = True
        peer.outbox.is_distant = True
        peer.outbox.is_away = number not in self._outgoing.ways
        self._service.inboxes[inbox[:FAR_INBOX_BYTES]] = peer
        self._distants[number] = RemoteGateway(peer, name, self._epochs.get(number, 0))

    def want(
        self, number: int, added: Iterable[InterestEntry], removed: Iterable[InterestEntry]
    ) -> None:
        """Change the subscriptions of a gateway."""
        distant = self._distants[number]
        router = self._service.router
        for pattern, group, _ in removed:
            router.unsubscribe(distant.outbox, pattern, group)
        for pattern, group, is_listener in added:
            router.subscribe(distant.outbox, pattern, group, _CUT, is_listener)

    def follow(self, number: int, version: int) -> None:
        """Note the interest version of a gateway, which forwarding headers carry."""
        distant = self._distants.get(number)
        if distant is not None:
            distant.mark = mark_of(version)

    def activate(self, changes: Iterable[tuple[InterestEntry, bool]], version: int) -> None:
        """Note that an interest version with these changes is advertised."""
        self._arrivals.activate(changes, version)

    def part(self, number: int) -> None:
        """Remove a gateway that has left or was unreachable for too long."""
        distant = self._distants.get(number)
        if distant is None:
            return
        self._service.router.leave(distant.outbox)
        forget_requests(distant.peer)
        del self._distants[number]
        self._came_by.pop(number, None)
        del self._service.inboxes[distant.peer.inbox]
        if len(self._epochs) >= EPOCHS_MAX:
            del self._epochs[next(iter(self._epochs))]
        self._epochs[number] = (distant.epoch + 1) & EPOCH_MAX
        distant.outbox.close()
        distant.peer.door = None
        self._outgoing.forget_plans()
        self._arrivals.forget(number)

    def plot(
        self, parents: dict[int, int], links: dict[int, Peer], edges: Container[tuple[int, int]]
    ) -> None:
        """Replace the routes.

        `parents` is the predecessor of each reachable gateway, `links` the open links; `edges` are
        current and recent links as pairs, the lower number first.
        """
        outboxes = {number: peer.outbox for number, peer in links.items()}
        before = self._outgoing.ways
        ways = Ways(self._outgoing.own, parents, outboxes)
        self._outgoing.go_by(ways)
        self._edges = edges
        self._paths.clear()
        self._arrivals.ask_anew()
        for number, distant in self._distants.items():
            is_away = number not in parents
            if is_away and not distant.outbox.is_away:
                forget_requests(distant.peer)
            distant.outbox.is_away = is_away
            if distant.unconfirmed_ns and ways.to(number) != before.to(number):
                # The new path has yet to be acknowledged.
                distant.unconfirmed_ns = 0
            # A gateway that is reachable again should soon get a mark.
            distant.mark_wait_ns = 0

    # Local interest.

    def local_changes(self) -> list[tuple[InterestEntry, bool]]:
        """Return the added (True) and removed local patterns since the last call."""
        router = self._service.router
        found: list[tuple[InterestEntry, bool]] = []
        if not router.changes:
            return found
        changes, router.changes = router.changes, {}
        for pattern, group in changes:
            if stays_here(pattern):
                continue
            before = self._own.pop((pattern, group), None)
            asked = router.wanted_here(pattern, group)
            if asked is not Asked.NOT:
                is_listener = asked is Asked.TO_LISTEN
                self._own[(pattern, group)] = is_listener
                if before == is_listener:
                    continue
                found.append((InterestEntry(pattern, group, is_listener), True))
            if before is not None:
                found.insert(0, (InterestEntry(pattern, group, before), False))
        return found

    # Timers.

    def tick(self) -> None:
        """Request missing frames and send marks; called several times a second."""
        now_ns = self._service.now_ns
        self._arrivals.tick()
        self._refusals.tick()
        if now_ns - self._marks_ns >= QUIET_NS:
            self._marks_ns = now_ns
            for distant in self._distants.values():
                if distant.next != distant.acked:
                    self._mark(distant, now_ns)
        if now_ns - self._swept_ns >= _S:
            self._swept_ns = now_ns
            self._outgoing.ring.expire(now_ns)
            oldest_ns = now_ns - int(self._service.limits.request_s * _S)
            for distant in self._distants.values():
                expire_requests(distant.peer, oldest_ns)

    def leave(self) -> None:
        """Send the last mark to all gateways, because this one leaves."""
        for number, distant in self._distants.items():
            self.send_word(number, HighWaterMark(distant.next, is_last=True))

    @property
    def is_quiet(self) -> bool:
        """Whether all reachable gateways have acknowledged everything."""
        return all(
            distant.acked == distant.next or distant.outbox.is_away
            for distant in self._distants.values()
        )

    def unconfirmed(self, before_ns: int) -> list[int]:
        """Return reachable gateways whose acknowledgement is due since before a time."""
        return [
            number
            for number, distant in self._distants.items()
            if 0 < distant.unconfirmed_ns < before_ns and not distant.outbox.is_away
        ]

    # Control messages.

    def send_word(self, number: int, word: RoutedWord) -> bool:
        """Send a control message to any gateway; False if it is unreachable."""
        # The path its messages take is known to forward, the one from here may not.
        way = self._came_by.get(number)
        if way and isinstance(word, Ack | Nack | LostRanges) and self._outgoing.answer(way, word):
            return True
        return self._outgoing.say(number, word)

    def hear_near(self, peer: Peer, body: bytes) -> None:
        """Handle a control message of the neighbour on a link."""
        if self.on_near is not None:
            self.on_near(peer, body)

    def part_near(self, peer: Peer) -> None:
        """Handle the end of a link."""
        if self.on_part is not None:
            self.on_part(peer)

    def hear_far(self, origin: int, body: bytes, path: bytes = b"") -> None:
        """Handle a control message that was forwarded here, with the path of its header."""
        if path and origin in self._distants:
            self._came_by[origin] = [u32_at(path, at) for at in range(len(path) - 4, -1, -4)]
        try:
            match decode(body):
                case HighWaterMark() | Gone() as word:
                    self._arrivals.hear(origin, word)
                case Ack(number):
                    self._hear_ack(origin, number)
                case Nack(first, last):
                    self._send_again(origin, first, last + 1)
                case LostRanges() as word:
                    self._refusals.hear(origin, word)
                case word:
                    if self.on_word is not None:
                        self.on_word(origin, word)
        except BadWord:
            # The gateway that forwarded it did not read it, so its link stays.
            self.counts.refuse("BadWord", 1)

    def trace(self, numbers: Iterable[int], word: Trace) -> list[Sprout]:
        """Send a trace towards these gateways; return the branches it took or did not."""
        known = [self._distants[number] for number in numbers if number in self._distants]
        return self._outgoing.trace(known, word)

    def hear_trace(self, origin: int, body: bytes, passage: TracedHop) -> None:
        """Handle a trace that takes the path of messages."""
        word = decode(body)
        if not isinstance(word, Trace):
            self.counts.refuse("BadTrace", 1)
        elif self.on_trace is not None:
            self.on_trace(origin, word, passage)

    def problem(self, header: bytes, sender: int) -> str:
        """Return why the path of a forwarding header is rejected; empty if it is not."""
        at = 32 + header[7]
        path = header[at : at + 4 * header[HOPS_AT]]
        known = self._paths.get(path)
        if known is None or u32_at(path, len(path) - 4) != sender:
            known = self._judge(path, sender)
            if len(self._paths) < PATHS_MAX:
                self._paths[path] = known
        if not known and u32_at(path, 0) != u32_at(header, 8):
            return "ForgedOrigin"
        return known

    def _judge(self, path: bytes, sender: int) -> str:
        hops = [u32_at(path, at) for at in range(0, len(path), 4)]
        if hops[-1] != sender:
            return "ForgedPath"
        if self._outgoing.own in hops or len(set(hops)) < len(hops):
            return "Loop"
        if hops[0] not in self._distants:
            return "UnknownOrigin"
        edges = ((min(pair), max(pair)) for pair in pairwise(hops))
        return "" if all(edge in self._edges for edge in edges) else "ForgedPath"

    def _mark(self, distant: RemoteGateway, now_ns: int) -> None:
        """Send a mark if one is due and frames are not acknowledged."""
        if distant.seen != distant.next:
            # While it receives frames, they reveal gaps.
            distant.seen = distant.next
            distant.mark_wait_ns = 0
            if now_ns - distant.marked_ns < BUSY_MARK_NS:
                return
        elif distant.mark_wait_ns and now_ns < distant.mark_ns:
            return
        if self.send_word(distant.number, HighWaterMark(distant.next)):
            distant.marked_ns = now_ns
            if distant.unconfirmed_ns == 0:
                distant.unconfirmed_ns = now_ns
            distant.mark_wait_ns = min(max(2 * distant.mark_wait_ns, QUIET_NS), MARK_MAX_NS)
            distant.mark_ns = now_ns + distant.mark_wait_ns

    def _hear_ack(self, origin: int, number: int) -> None:
        distant = self._distants.get(origin)
        if distant is not None and distant.acked < number <= distant.next:
            distant.acked = number
            distant.unconfirmed_ns = 0

    def _send_again(self, origin: int, first: int, last: int) -> None:
        """Retransmit frames, and report the unavailable ranges."""
        distant = self._distants.get(origin)
        now_ns = self._service.now_ns
        if distant is None or first >> EPOCH_BITS != distant.epoch or last > distant.next:
            return
        if now_ns - distant.resent_ns < RESEND_NS and distant.resent_ns:
            self.counts.refuse("TooManyNacks", 1)
            return
        distant.resent_ns = now_ns
        sent_bytes = 0
        for piece in self._outgoing.ring.find(origin, first, last):
            if piece.first > first:
                self.send_word(origin, Gone(((first, piece.first - 1),)))
            sent_bytes += len(piece.frames)
            if sent_bytes > RESEND_BYTES or not self._outgoing.send_again(origin, piece):
                return
            first = piece.first + piece.frame_count
        if first < last:
            self.send_word(origin, Gone(((first, last - 1),)))
