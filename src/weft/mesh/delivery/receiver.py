"""Receiving side of the mesh: delivers frames of other gateways in order, at most once.

Frames are delivered unchanged: their origin stamped them, and stored them if it keeps a journal.
They are stored here only by a journal of the whole mesh. Missing frames are requested for a limited
time; then local subscribers get a gap.
"""

from collections.abc import Callable, Iterable

from weft.broker.delivery.drop_counts import put_gap
from weft.broker.replies import error_frame
from weft.broker.requests import is_own_inbox, pass_refusal, pass_reply, pass_request
from weft.broker.service import NOWHERE, Peer, Service
from weft.mesh.counters import TrafficCounts
from weft.mesh.delivery.frame_batch import Load
from weft.mesh.delivery.origin_stream import HeldFrames, Incoming
from weft.mesh.delivery.remote_gateway import EPOCH_BITS, RemoteGateway
from weft.mesh.interest.activation import Activation
from weft.mesh.protocol import Ack, Gone, HighWaterMark, InterestEntry, LostRanges, Nack, RoutedWord
from weft.mesh.routing.forward_header import FIRST_MARK, ONE, PLAIN, mark_of
from weft.wire.buffer import Writer
from weft.wire.byteops import cut, same_bytes, u32_at
from weft.wire.frames import HEADER_BYTES, RESERVED_FLAGS, Flag, Kind
from weft.wire.subjects import stays_here

# How long frames that took a faster path are held before the missing ones are requested.
HOLD_NS = 50_000_000
# Interval between requests for the same frames: a request or its answer may be lost with a link,
# whose loss takes two seconds to detect.
ASK_NS = 1_000_000_000
# Missing frames that do not arrive within this time, with a path to their origin, are lost.
REPAIR_NS = 3_000_000_000
# How long lost ranges are reported with each acknowledgement, because the last one may be lost
# itself. The sender keeps the frames for as long.
MISSED_NS = 30_000_000_000
# Bound on the forgotten gateways whose last number is remembered.
ENDED_MAX = 4096

_HEADER = HEADER_BYTES
_PLAIN = PLAIN
_ONE = ONE
_MESSAGE = int(Kind.MESSAGE)
_ERROR = int(Kind.ERROR)
_REQUEST = int(Flag.REQUEST)
_RESERVED = RESERVED_FLAGS
_REFUSED = (int(Kind.MESSAGE), int(Flag.REQUEST))
_INBOX = b"_INBOX."
_NOWHERE = NOWHERE

Say = Callable[[int, RoutedWord], bool]


class Arrivals:
    """Frames and stream state from all other gateways."""

    def __init__(
        self, service: Service, counts: TrafficCounts, distants: dict[int, RemoteGateway], say: Say
    ) -> None:
        self._service = service
        self._counts = counts
        self._distants = distants
        self._say = say
        self._incoming: dict[int, Incoming] = {}
        # Streams with missing frames, or with an acknowledgement due.
        self._unsettled: dict[int, Incoming] = {}
        # End of the stream of each forgotten gateway, to reject duplicates if it returns.
        self._ended: dict[int, int] = {}
        # Route of the last message: most following ones have the same subject.
        self._subject = b""
        self._route = NOWHERE
        self.activation = Activation(service.router)
        # Mark of the interest version that this gateway advertises.
        self.mark = FIRST_MARK

    def stream(self, origin: int, number: int) -> Incoming:
        """Return the stream from a gateway, of which a frame with this number arrived."""
        incoming = self._incoming.get(origin)
        if incoming is None:
            incoming = Incoming(origin, number)
            ended = self._ended.pop(origin, 0)
            if ended >> EPOCH_BITS == number >> EPOCH_BITS:
                incoming.expected = incoming.top = ended
            elif ended >> EPOCH_BITS < number >> EPOCH_BITS:
                # It had forgotten this gateway: frames sent before that are lost.
                self._announce(origin, 0)
            self._incoming[origin] = incoming
        return incoming

    def arrive(self, incoming: Incoming, load: Load) -> None:
        """Deliver, hold or drop frames of the arena."""
        if load.number == incoming.expected:
            incoming.expected += load.count
            self._deliver(load)
            if incoming.hole_ns:
                self._release(incoming)
        else:
            self._arrive_odd(incoming, load)

    def hear(self, origin: int, word: HighWaterMark | Gone) -> None:
        """Handle a mark or unavailable ranges."""
        if isinstance(word, HighWaterMark):
            self._hear_mark(self.stream(origin, word.number), word)
            return
        incoming = self._incoming.get(origin)
        if incoming is None:
            return
        for first, last in word.ranges:
            if first <= incoming.expected <= last < incoming.hole_end:
                self._lose(incoming, last + 1)

    def tick(self) -> None:
        """Request missing frames, and give up on those requested too long ago."""
        if self._unsettled:
            for incoming in list(self._unsettled.values()):
                self._look_after(incoming)

    def activate(self, changes: Iterable[tuple[InterestEntry, bool]], version: int) -> None:
        """Note that an interest version with these changes is advertised."""
        self.activation.apply(changes, version)
        self.mark = mark_of(version)

    def ask_anew(self) -> None:
        """Request missing frames again: paths have changed, so requests may have been lost."""
        for incoming in self._unsettled.values():
            incoming.asked_ns = 0

    def forget(self, origin: int) -> None:
        """Remove a gateway and report a gap, unless its stream was complete and had ended."""
        incoming = self._incoming.pop(origin, None)
        self._unsettled.pop(origin, None)
        if incoming is None:
            # Frames from it may have been lost.
            self._announce(origin, 0)
            return
        is_all = incoming.is_last
        while not incoming.is_complete:
            before = incoming.expected
            self._lose(incoming, incoming.hole_end)
            if incoming.expected == before:
                # The arena has no room for the held frames: they are lost, too.
                is_all = False
                break
        if not is_all:
            self._announce(origin, 0)
        if len(self._ended) >= ENDED_MAX:
            self._ended.clear()
        self._ended[origin] = max(incoming.expected, incoming.top)

    def _hear_mark(self, incoming: Incoming, mark: HighWaterMark) -> None:
        if not self._is_of_this_epoch(incoming, mark.number):
            return
        incoming.top = max(incoming.top, mark.number)
        incoming.is_last = incoming.is_last or mark.is_last
        incoming.is_ack_due = True
        if not incoming.is_complete:
            incoming.missing(self._service.now_ns)
        self._unsettled[incoming.origin] = incoming
        self._look_after(incoming)

    def _look_after(self, incoming: Incoming) -> None:
        now_ns = self._service.now_ns
        if not incoming.is_complete:
            self._release(incoming)
        if incoming.is_complete:
            if incoming.is_ack_due and not self._acknowledge(incoming):
                return
            incoming.is_ack_due = False
            self._unsettled.pop(incoming.origin, None)
        elif self._is_away(incoming.origin):
            # No path for a request: the time limit starts when there is one.
            incoming.hole_ns = now_ns
        elif now_ns - incoming.hole_ns > REPAIR_NS:
            self._lose(incoming, incoming.hole_end)
        elif now_ns - incoming.hole_ns >= HOLD_NS and now_ns - incoming.asked_ns > ASK_NS:
            nack = Nack(incoming.expected, incoming.hole_end - 1)
            if self._say(incoming.origin, nack):
                incoming.asked_ns = now_ns

    def _acknowledge(self, incoming: Incoming) -> bool:
        """Acknowledge a complete stream and report lost ranges; False if unreachable."""
        missed = incoming.missed
        if missed and self._service.now_ns - incoming.missed_ns > MISSED_NS:
            missed.clear()
        # In this order: once the acknowledgement arrives, the report has arrived too.
        if missed and not self._say(incoming.origin, LostRanges(tuple(missed))):
            return False
        return self._say(incoming.origin, Ack(incoming.expected))

    def _is_away(self, origin: int) -> bool:
        """Return whether a known gateway is unreachable."""
        distant = self._distants.get(origin)
        return distant is not None and distant.outbox.is_away

    def _arrive_odd(self, incoming: Incoming, load: Load) -> None:
        """Handle frames out of order, or received before."""
        counts = self._counts
        if not self._is_of_this_epoch(incoming, load.number):
            counts.doubled += load.count
            return
        data = self._service.arena.data
        counts.doubled += load.skip(data, incoming.expected)
        if load.count == 0:
            return
        if load.number == incoming.expected:
            self.arrive(incoming, load)
            return
        held = HeldFrames(
            load.count, load.flags, load.group, cut(data, load.start, load.end), load.mark
        )
        self._unsettled[incoming.origin] = incoming
        if incoming.hold(load.number, held, self._service.now_ns):
            counts.held += load.count
        elif incoming.held_bytes and load.number >= incoming.hole_end:
            # Out of room: give up the missing frames.
            incoming.top = max(incoming.top, load.number + load.count)
            self._lose(incoming, incoming.hole_end)
        else:
            counts.doubled += load.count

    def _release(self, incoming: Incoming) -> None:
        """Deliver held frames up to the next gap."""
        arena = self._service.arena
        load = Load()
        load.origin = incoming.origin
        is_moved = False
        while (due := incoming.due()) is not None:
            number, held = due
            load.start = arena.put(held.frames)
            if load.start < 0:
                # Out of room until the next turn.
                incoming.put_back(number, held)
                return
            load.end = arena.fill
            load.number, load.count = number, held.frame_count
            load.flags, load.group, load.mark = held.flags, held.group, held.mark
            self._counts.doubled += load.skip(arena.data, incoming.expected)
            if load.count > 0:
                incoming.expected = load.number + load.count
                self._deliver(load)
            is_moved = True
        if is_moved or incoming.is_complete:
            incoming.moved(self._service.now_ns)

    def _lose(self, incoming: Incoming, until: int) -> None:
        """Give up the missing frames below a number."""
        if until > incoming.expected:
            self._announce(incoming.origin, until - incoming.expected)
            incoming.miss(until, self._service.now_ns)
        self._release(incoming)

    def _is_of_this_epoch(self, incoming: Incoming, number: int) -> bool:
        """Return whether a number is of the current epoch; a later epoch starts with it."""
        epoch, expected = number >> EPOCH_BITS, incoming.expected >> EPOCH_BITS
        if epoch > expected:
            incoming.begin_anew(number)
            self._announce(incoming.origin, 0)
        return epoch >= expected

    def _announce(self, origin: int, count: int) -> None:
        """Report a gap to all local subscribers; a count of 0 means unknown."""
        self._counts.lost += count
        self._counts.gaps += 1
        writer = Writer()
        put_gap(writer, origin, "lost", count)
        gap = writer.take()
        router = self._service.router
        for peer in self._service.peers.values():
            if peer.is_greeted and peer.carrier is None and router.count(peer.outbox) > 0:
                peer.owe(gap)

    def _deliver(self, load: Load) -> None:
        """Deliver frames to local subscribers."""
        service = self._service
        data = service.arena.data
        start = load.start
        self._counts.received += load.count
        if load.flags & _ONE:
            self._deliver_each(load)
            return
        if data[start + 4] != _MESSAGE or u32_at(data, start + 8) != load.origin:
            self._counts.refuse("ForgedOrigin", load.count)
            return
        length = data[start + 6]
        if (
            self._route.is_stale
            or length != len(self._subject)
            or not same_bytes(data, start + _HEADER, self._subject, 0, length)
        ):
            self._find(cut(data, start + _HEADER, start + _HEADER + length))
        route = self._route
        if load.flags & _PLAIN:
            journal = service.router.journal
            if route.is_journaled and journal is not None and journal.is_of_mesh:
                # Always part of the interest, so without gaps; a subscription joins all of it.
                journal.take_arrived(start, load.end, load.count)
            elif load.mark and (load.mark != self.mark or service.router.changes):
                route = self.activation.route(route, load.mark)
            receivers = route.deliver_to_each(start, load.end, None, False)
            service.deliveries += receivers * load.count
        else:
            handed = route.deliver_to_group(load.group, start, load.end)
            service.deliveries += handed
            self._counts.unserved += load.count - handed

    def _find(self, subject: bytes) -> None:
        """Look up the route of a subject; system subjects of other gateways are rejected."""
        self._subject = subject
        self._route = _NOWHERE
        if stays_here(subject):
            self._counts.refuse("Reserved", 1)
            return
        route = self._service.router.route(subject)
        if route is None:
            self._counts.refuse("BadSubject", 1)
        else:
            self._route = route

    def _deliver_each(self, load: Load) -> None:
        """Deliver frames that are addressed to one receiver each."""
        distant = self._distants.get(load.origin)
        if distant is None:
            self._counts.unserved += load.count
            return
        service = self._service
        data = service.arena.data
        service.stamp.publisher = 0
        service.stamp.time_ns = service.wall_ns
        at = load.start
        while at < load.end:
            size = u32_at(data, at)
            if data[at + 4] == _ERROR:
                pass_refusal(distant.peer, at)
            else:
                self._deliver_one(distant.peer, at)
            at += size

    def _deliver_one(self, peer: Peer, at: int) -> None:
        """Deliver a reply or a request; a request that fails is answered with an error."""
        data = self._service.arena.data
        names = at + _HEADER + data[at + 6]
        subject = cut(data, at + _HEADER, names)
        peer.subject = subject
        if data[at + 5] & _RESERVED:
            # Reserved flags are set only by the gateway of the requester.
            self._counts.refuse("ReservedFlags", 1)
            return
        if subject.startswith(_INBOX):
            if pass_reply(peer, at) is not None:
                self._counts.unserved += 1
            return
        reply = cut(data, names, names + data[at + 7])
        route = None if stays_here(subject) else self._service.router.route(subject)
        if route is None or not data[at + 5] & _REQUEST or not is_own_inbox(peer, reply):
            self._counts.refuse("BadRequest", 1)
            return
        peer.route = route
        problem = pass_request(peer, at, reply)
        peer.route = _NOWHERE
        if problem is not None:
            self._counts.unserved += 1
            peer.owe(error_frame(peer, subject, reply, _REFUSED, problem))
