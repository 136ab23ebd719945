"""What arrives from other gateways for subscribers here: in order, once, or announced as lost.

Frames are handed on as they came: they were stamped where they entered, and are kept there, if they
are; here only by a journal that is of the whole mesh.
What is missing is asked for once; if it does not come, those who are subscribed here are told.
"""

from collections.abc import Callable, Iterable

from weft.broker.delivery.drop_counts import put_gap
from weft.broker.replies import error_frame
from weft.broker.requests import is_own_inbox, pass_refusal, pass_reply, pass_request
from weft.broker.service import NOWHERE, Peer, Service
from weft.mesh.counters import TrafficCounts
from weft.mesh.delivery.frame_batch import Load
from weft.mesh.delivery.origin_stream import Held, Incoming
from weft.mesh.delivery.remote_gateway import EPOCH_BITS, Distant
from weft.mesh.interest.activation import Activation
from weft.mesh.protocol import Ack, Gone, Mark, Missed, Nack, RoutedWord, Wanted
from weft.mesh.routing.forward_header import FIRST_MARK, ONE, PLAIN, mark_of
from weft.wire.buffer import Writer
from weft.wire.byteops import cut, same_bytes, u32_at
from weft.wire.frames import HEADER_BYTES, RESERVED_FLAGS, Flag, Kind
from weft.wire.subjects import stays_here

# What overtook something on another way is held back so long before that is asked for.
HOLD_NS = 50_000_000
# What was asked for and did not come is asked for again: the question, or the answer, may have been
# on a link that is lost, which takes two seconds to be noticed.
ASK_NS = 1_000_000_000
# What did not come within this, and could be asked for, is announced as lost.
REPAIR_NS = 3_000_000_000
# For so long a gateway is told, with each word that it has arrived, what never did: the last such
# word may have been lost. It keeps what it sent for as long.
MISSED_NS = 30_000_000_000
# Of so many that were forgotten it is known where they ended.
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
    """Everything that other gateways sent to one."""

    def __init__(
        self, service: Service, counts: TrafficCounts, distants: dict[int, Distant], say: Say
    ) -> None:
        self._service = service
        self._counts = counts
        self._distants = distants
        self._say = say
        self._incoming: dict[int, Incoming] = {}
        # Those of which something is missing, or that wait to hear that nothing is.
        self._unsettled: dict[int, Incoming] = {}
        # Where those that were forgotten ended: what came before must not come again.
        self._ended: dict[int, int] = {}
        # Where the last messages went: most that follow have the same subject.
        self._subject = b""
        self._route = NOWHERE
        self.activation = Activation(service.router)
        # The mark of what this gateway tells now that it wants.
        self.mark = FIRST_MARK

    def stream(self, origin: int, number: int) -> Incoming:
        """What comes from a gateway, of which a number has come."""
        incoming = self._incoming.get(origin)
        if incoming is None:
            incoming = Incoming(origin, number)
            ended = self._ended.pop(origin, 0)
            if ended >> EPOCH_BITS == number >> EPOCH_BITS:
                incoming.expected = incoming.top = ended
            elif ended >> EPOCH_BITS < number >> EPOCH_BITS:
                # It had forgotten this gateway: what it had for it before will not come.
                self._announce(origin, 0)
            self._incoming[origin] = incoming
        return incoming

    def arrive(self, incoming: Incoming, load: Load) -> None:
        """Deal with frames of the arena."""
        if load.number == incoming.expected:
            incoming.expected += load.count
            self._deliver(load)
            if incoming.hole_ns:
                self._release(incoming)
        else:
            self._arrive_odd(incoming, load)

    def hear(self, origin: int, word: Mark | Gone) -> None:
        """A gateway says what it has sent, or what it cannot send again."""
        if isinstance(word, Mark):
            self._hear_mark(self.stream(origin, word.number), word)
            return
        incoming = self._incoming.get(origin)
        if incoming is None:
            return
        for first, last in word.ranges:
            if first <= incoming.expected <= last < incoming.hole_end:
                self._lose(incoming, last + 1)

    def tick(self) -> None:
        """Ask for what is missing, and give up on what was asked for and did not come."""
        if self._unsettled:
            for incoming in list(self._unsettled.values()):
                self._look_after(incoming)

    def activate(self, changes: Iterable[tuple[Wanted, bool]], version: int) -> None:
        """Others are told a version of what is wanted here that includes these changes."""
        self.activation.apply(changes, version)
        self.mark = mark_of(version)

    def ask_anew(self) -> None:
        """The ways are others now: what was asked for by those before may never have been heard."""
        for incoming in self._unsettled.values():
            incoming.asked_ns = 0

    def forget(self, origin: int) -> None:
        """A gateway is gone: nothing more will come; say so unless it had said that it was all."""
        incoming = self._incoming.pop(origin, None)
        self._unsettled.pop(origin, None)
        if incoming is None:
            # It may have sent what never came.
            self._announce(origin, 0)
            return
        is_all = incoming.is_last
        while not incoming.is_complete:
            before = incoming.expected
            self._lose(incoming, incoming.hole_end)
            if incoming.expected == before:
                # The arena has no room for what was held back: it is lost, too.
                is_all = False
                break
        if not is_all:
            self._announce(origin, 0)
        if len(self._ended) >= ENDED_MAX:
            self._ended.clear()
        self._ended[origin] = max(incoming.expected, incoming.top)

    def _hear_mark(self, incoming: Incoming, mark: Mark) -> None:
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
            # Nobody can be asked: the time for that begins with the way back.
            incoming.hole_ns = now_ns
        elif now_ns - incoming.hole_ns > REPAIR_NS:
            self._lose(incoming, incoming.hole_end)
        elif now_ns - incoming.hole_ns >= HOLD_NS and now_ns - incoming.asked_ns > ASK_NS:
            nack = Nack(incoming.expected, incoming.hole_end - 1)
            if self._say(incoming.origin, nack):
                incoming.asked_ns = now_ns

    def _acknowledge(self, incoming: Incoming) -> bool:
        """Tell a gateway that nothing more is missing, and what never came; False if no way."""
        missed = incoming.missed
        if missed and self._service.now_ns - incoming.missed_ns > MISSED_NS:
            missed.clear()
        # Before the word that ends its questions: where that is heard, this was.
        if missed and not self._say(incoming.origin, Missed(tuple(missed))):
            return False
        return self._say(incoming.origin, Ack(incoming.expected))

    def _is_away(self, origin: int) -> bool:
        """Say if there is no way to a gateway; whoever it is, it is not forgotten yet."""
        distant = self._distants.get(origin)
        return distant is not None and distant.outbox.is_away

    def _arrive_odd(self, incoming: Incoming, load: Load) -> None:
        """Deal with frames that are not those expected: too early, or there before."""
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
        held = Held(load.count, load.flags, load.group, cut(data, load.start, load.end), load.mark)
        self._unsettled[incoming.origin] = incoming
        if incoming.hold(load.number, held, self._service.now_ns):
            counts.held += load.count
        elif incoming.held_bytes and load.number >= incoming.hole_end:
            # There is no room for more: what is missing is given up.
            incoming.top = max(incoming.top, load.number + load.count)
            self._lose(incoming, incoming.hole_end)
        else:
            counts.doubled += load.count

    def _release(self, incoming: Incoming) -> None:
        """Hand on what was held back, as far as nothing is missing before it."""
        arena = self._service.arena
        load = Load()
        load.origin = incoming.origin
        is_moved = False
        while (due := incoming.due()) is not None:
            number, held = due
            load.start = arena.put(held.frames)
            if load.start < 0:
                # In the next turn there is room.
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
        """What is missing before a number will not come."""
        if until > incoming.expected:
            self._announce(incoming.origin, until - incoming.expected)
            incoming.miss(until, self._service.now_ns)
        self._release(incoming)

    def _is_of_this_epoch(self, incoming: Incoming, number: int) -> bool:
        """Say if a number is of the epoch that counts now; a later one begins with it."""
        epoch, expected = number >> EPOCH_BITS, incoming.expected >> EPOCH_BITS
        if epoch > expected:
            incoming.begin_anew(number)
            self._announce(incoming.origin, 0)
        return epoch >= expected

    def _announce(self, origin: int, count: int) -> None:
        """Tell everyone who is subscribed that messages of a gateway are lost; 0: not counted."""
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
        """Hand frames to those whom they are for here."""
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
                # Always wanted, so there is no hole in it; history is joined with all of it.
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
        """Look up who wants a subject; what belongs to a system is nobody's business elsewhere."""
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
        """Hand on frames that say themselves whom they are for."""
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
        """Hand on a reply, or a request: then its gateway is told if that cannot be."""
        data = self._service.arena.data
        names = at + _HEADER + data[at + 6]
        subject = cut(data, at + _HEADER, names)
        peer.subject = subject
        if data[at + 5] & _RESERVED:
            # Only the gateway of whoever asked answers for itself.
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
