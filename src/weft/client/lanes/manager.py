"""The lanes of one connection: what the gateway says of them, and what goes and comes by them.

Everything here runs on the loop's thread. The engine gives it what is to be sent, and what comes
through the gateway while there are lanes; splitter.py and receive_stream.py say what goes where.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from time import time_ns

from weft.client.lanes.busy_poll import Looking, has_cores
from weft.client.lanes.connection_api import Gate
from weft.client.lanes.handshake import Invitation
from weft.client.lanes.lane import Lane
from weft.client.lanes.publisher_side import Offers
from weft.client.lanes.receive_stream import Run
from weft.client.lanes.receiver_side import Invitations
from weft.client.lanes.shutdown import LaneEnds
from weft.client.lanes.splitter import FIRST_SEQUENCE, Splitter
from weft.client.lanes.table import LaneTable
from weft.client.lanes.transport import Wire
from weft.client.requests.waiters import Several
from weft.client.status import Status, What
from weft.errors import BadMessage, NotAllowed, ProtocolError, ResponderGone
from weft.wire.frames import HEADER_BYTES, Flag, Kind
from weft.wire.lane_messages import lane_frame, word_in
from weft.wire.message.message import Message

# How often counts are told, and lanes looked after.
TICK_S = 0.5
# A lane on which nothing is confirmed for so long is given up: while it is full, and otherwise.
SLOW_S = 0.5
DEAD_S = 3.0
# How long whoever was told to call is waited for before it is called itself.
CALLED_S = 1.0
# What of one client may be held back because its lane is late.
HELD_MAX_BYTES = 8 << 20

_MESSAGE = bytes([Kind.MESSAGE])
_REQUEST = int(Flag.REQUEST)
_SUBJECT = HEADER_BYTES


class Lanes:
    """All of them, at both ends."""

    def __init__(self, gate: Gate, *, is_required: bool, is_looking: bool) -> None:
        self.gate = gate
        self.reporter = gate.reporter
        self.splitter = Splitter(is_required=is_required)
        self.own_inbox = b""
        self._session = gate.session
        self._loop = asyncio.get_running_loop()
        self.table = LaneTable(gate.session, gate.reading)
        self._offers = Offers(self)
        self._invitations = Invitations(self)
        self.ends = LaneEnds(self.table, self.splitter, gate, self._lost)
        is_wanted = is_looking and has_cores()
        self._looking = Looking(self._loop.call_soon, is_wanted=is_wanted)
        self._timer: asyncio.TimerHandle | None = None
        self._ticked_at = 0.0
        self._refused = 0
        # Lanes that somebody waits for, by the number of whoever is to call for them.
        self._expected: dict[int, asyncio.Future[Lane]] = {}
        self._on: dict[str, Callable[[Message], None]] = {
            "invite": self._invitations.invited,
            "offer": self._offers.offered,
            "withdraw": self._offers.withdrawn,
            "switch": partial(self._streamed, "switch"),
            "tail": partial(self._streamed, "tail"),
            "end": partial(self._streamed, "end"),
            "over": self._is_over,
        }
        self._greets: dict[str, Callable[[Lane, Message], None]] = {
            "hello": self._invitations.hello,
            "prove": self._invitations.proven,
            "serve": self._offers.served,
            "refused": self._offers.refused,
        }

    # What the engine calls.

    @property
    def is_needed(self) -> bool:
        """Say if what is sent must be split."""
        return self.splitter.is_needed

    @property
    def refusals(self) -> int:
        """How often strangers and other clients were refused what they may not."""
        return self._refused + self._invitations.listener.refused

    @property
    def may_send(self) -> bool:
        """Say if there is room for more, and nothing that must come to its end before."""
        return not (self.splitter.is_full or self.ends.is_waiting)

    def welcomed(self) -> None:
        """A gateway is there, perhaps another one: connections have other numbers."""
        self.ends.is_gateway_here = True
        session = self._session
        self.own_inbox = self.splitter.own_inbox = session.inbox + b"."
        stamp = self.splitter.stamp
        stamp.origin, stamp.publisher = session.origin, session.publisher
        stamp.sequence = FIRST_SEQUENCE

    def lost(self) -> None:
        """The gateway is gone: lanes are used up, and nothing new goes by them."""
        self._offers.clear()
        self._invitations.lost()
        self.ends.part_all()
        # Whoever awaited an answer is told so.
        self.splitter.asked.clear()

    async def until_direct(self, subject: bytes) -> None:
        """Wait until a subject goes by lanes.

        Raises:
            NotDirect: it does not come to that.
        """
        if subject not in self.splitter.routes:
            await self._offers.decided(subject)

    def split(self, view: memoryview, write: Callable[[memoryview], object]) -> None:
        """Send what is next on its ways."""
        self.splitter.stamp.time_ns = time_ns()
        data = view.obj
        if not isinstance(data, bytearray):
            raise TypeError("only what lies in a bytearray can be stamped in place")
        splitter = self.splitter
        dropped, exchanges = splitter.dropped, splitter.exchanges
        splitter.split(data, len(view), write, self._loop.time())
        if splitter.exchanges != exchanges:
            self._looking.begin()
        if dropped == 0 and splitter.dropped:
            detail = "messages were dropped: a lane is required for them, and there is none"
            self.reporter.report(Status(What.DROPPED, detail))

    def word(self, frame: bytes) -> None:
        """The gateway says something about lanes.

        Raises:
            WeftError: it cannot be understood.
        """
        word, facts = word_in(frame)
        act = self._on.get(word)
        if act is None:
            raise BadMessage(f"a gateway does not say {word!r} about lanes")
        act(facts)

    def merge(self, run: Run) -> list[Run]:
        """Messages came through the gateway: what of them is next, now."""
        merged = self.table.merge(run, self._is_heard)
        for lane in self.table:
            self._check_held(lane)
        return merged

    def tail(self, frame: bytes) -> None:
        """A message came through the gateway that a lane did not bring."""
        lane = self.table.of_sender(frame)
        if lane is not None:
            lane.tail(frame[:4] + _MESSAGE + frame[5:])
            self._check_held(lane)

    def finish_all(self) -> None:
        """End every lane through the gateway, because the connection ends."""
        for lane in self.table:
            self.ends.finish(lane, "the connection is closed")

    def close(self) -> None:
        """Nothing comes or goes any more."""
        self._offers.clear()
        self._invitations.close()
        for lane in self.table:
            self.table.forget(lane)
            lane.wire.close()
        self.ends.close()
        if self._timer is not None:
            self._timer.cancel()

    def reconsider(self) -> None:
        """A subscription is gone: tell the senders, and drop what waits for nobody else."""
        for lane in self.table:
            for subject in (lane.serves | lane.shown) - lane.unserved:
                if not self.serves(subject):
                    lane.withdraw(subject)
            lane.incoming.withdraw(self._is_heard)

    # What offers and invitations call.

    def serves(self, subject: bytes) -> bool:
        """Say if somebody here hears a subject, and not as one of a group."""
        found = self.gate.subscriptions.interests.find(subject)
        return bool(found) and not any(each.group for each in found)

    def _is_heard(self, run: Run) -> bool:
        """Return whether messages that arrive now have a receiver."""
        first = run[0]
        subject = first[_SUBJECT : _SUBJECT + first[6]]
        if first[5] & _REQUEST or subject.startswith(self.own_inbox):
            return True
        found = self.gate.subscriptions.interests.find(subject)
        return any(each.group or each.confirmed.is_set() for each in found)

    def hears(self, subject: bytes) -> bool:
        """Return whether a subject is served by a subscription that the gateway confirmed."""
        found = self.gate.subscriptions.interests.find(subject)
        return self.serves(subject) and any(each.confirmed.is_set() for each in found)

    async def called_by(self, number: int) -> Lane | None:
        """The lane that a connection is about to call for, if it does so soon.

        Of two that are told to call each other one must wait, or each would refuse the other: the
        one with the higher number does, unless the other is at its door already.
        """
        listener = self._invitations.listener
        is_lower = self._session.publisher < number
        if not (listener.is_shown(number) if is_lower else listener.expects(number)):
            return None
        begun: asyncio.Future[Lane] = self._loop.create_future()
        self._expected[number] = begun
        try:
            async with asyncio.timeout(CALLED_S):
                return await begun
        except TimeoutError:
            return self.table.of(number)
        finally:
            del self._expected[number]

    def begin(self, wire: Wire, invitation: Invitation, keys: tuple[bytes, bytes] | None) -> Lane:
        """Use a wire whose ends are proven; what this end says is sealed with the first key.

        Raises:
            NotAllowed: it comes too late.
        """
        if not self.ends.is_gateway_here:
            wire.close()
            raise NotAllowed("the gateway is gone meanwhile")
        if self.table.of(invitation.other.number) is not None:
            wire.close()
            raise NotAllowed("the last lane between these two is not over yet")
        lane = Lane(invitation, self._session.origin, wire, self)
        wire.speaker = lane
        wire.begin(self._session.body_limit_bytes, keys)
        self.table.add(lane)
        self.splitter.add(lane.out)
        lane.progress_at = lane.heard_at = self._loop.time()
        expected = self._expected.get(lane.other.number)
        if expected is not None and not expected.done():
            expected.set_result(lane)
        if self._timer is None:
            self._ticked_at = lane.progress_at
            self._timer = self._loop.call_later(TICK_S, self._tick)
        return lane

    # What lanes call.

    def refuse(self, count: int) -> None:
        """Count what the other end of a lane may not do."""
        self._refused += count

    def may_answer(self, lane: Lane, reply: bytes) -> bool:
        """Say if what comes to an own reply subject may come from the other end of a lane.

        Whoever was asked answers, and nobody else; of those who were told and not asked, all may.
        """
        asked = self.splitter.asked.get(reply)
        if asked is not None:
            return asked == lane.other.number
        waiter = self._session.waiter(reply)
        return waiter is None or isinstance(waiter, Several)

    def deal(self, lane: Lane, runs: list[Run]) -> None:
        """Messages are next in the stream of another client."""
        if runs:
            self._looking.came()
            self.gate.deal(runs)
        lane.wire.is_early = lane.incoming.is_lane_early
        self.gate.reading.steer()
        if lane.incoming.is_over:
            self.ends.sent_all(lane)

    def greeted(self, lane: Lane, word: str, facts: Message) -> None:
        """A word about a further subject came by a lane.

        Raises:
            BadMessage: there is no such word.
        """
        greet = self._greets.get(word)
        if greet is None:
            raise BadMessage(f"a lane does not carry the word {word!r}")
        greet(lane, facts)

    def not_served(self, lane: Lane, subject: bytes) -> None:
        """The other end does not serve a subject any more."""
        direct = self.splitter.routes.get(subject)
        if direct is not None and lane.out in direct.outs:
            self._offers.decline(subject, f"{lane.other.name} does not serve it any more")

    # What others say of their streams, through the gateway.

    def _streamed(self, word: str, facts: Message) -> None:
        peer, number = facts.get_int64("peer"), facts.get_int64("lane")
        lane = self.table.of(peer)
        if lane is None or lane.number != number:
            if word == "tail":
                # The other end waits for the end of a lane that this one never had.
                self.gate.tell_gateway(lane_frame("end", peer=peer, lane=number, count=0))
            return
        lane.is_confirmed = True
        incoming = lane.incoming
        try:
            if word == "switch":
                self.deal(lane, incoming.switched_by_gateway(facts.get_int64("number")))
            elif word == "tail":
                self.deal(lane, incoming.tail(facts.get_int64("from")))
                self.ends.finish(lane, f"{lane.other.name} ended the lane")
            else:
                self.deal(lane, incoming.end(facts.get_int64("count")))
            self._check_held(lane)
        except ProtocolError as error:
            # It is the other client's fault, and not the gateway's.
            self.refuse(1)
            self.ends.give_up(lane, str(error))

    def _check_held(self, lane: Lane) -> None:
        """Wait no longer for somebody for whom too much would have to be kept meanwhile."""
        if lane.incoming.held_bytes > HELD_MAX_BYTES:
            self.refuse(1)
            self.ends.give_up(lane, f"over {HELD_MAX_BYTES} bytes wait for its lane")

    def _is_over(self, facts: Message) -> None:
        number = facts.get_int64("peer")
        reason = str(facts.get("reason", ""))
        # Its lane may be over already.
        asked = [reply for reply, peer in self.splitter.asked.items() if peer == number]
        for reply in asked:
            del self.splitter.asked[reply]
        self.gate.gone(asked, ResponderGone(reason))
        lane = self.table.of(number)
        if lane is None:
            return
        if facts.get("gone", False):
            self.ends.gone(lane)
        else:
            self.ends.drop(lane)

    # What time brings.

    def _tick(self) -> None:
        self._timer = self._loop.call_later(TICK_S, self._tick) if self.table else None
        now = self._loop.time()
        # A program that stood still itself has heard nothing, whatever others did.
        was_still = now - self._ticked_at > 2 * TICK_S
        self._ticked_at = now
        self._offers.tell_counts()
        for lane in self.table:
            waited_s = now - lane.progress_at
            if lane.incoming.taken != lane.heard:
                lane.heard, lane.heard_at = lane.incoming.taken, now
            is_idle = lane.out.is_settled or self.ends.is_parting(lane)
            if was_still or is_idle or not lane.is_waited_for:
                # What went just before this may not be there yet.
                lane.progress_at = now
                lane.is_waited_for = not is_idle
            elif waited_s >= (SLOW_S if lane.out.is_full else DEAD_S):
                self.ends.finish(lane, f"{lane.other.name} took nothing for {waited_s:.1f} s")
        self.ends.release_unused()
        asked = self.splitter.asked
        for reply in [reply for reply in asked if self._session.waiter(reply) is None]:
            del asked[reply]

    def _lost(self, lane: Lane, reason: str) -> None:
        """Nothing new goes by a lane."""
        self._offers.lane_lost(lane, reason)
        self._invitations.lane_lost(lane)
