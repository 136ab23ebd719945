"""Lane manager of one connection: control messages of the gateway, sent and received messages.

Runs on the loop's thread. The engine passes it the frames to send, and messages from the gateway
while there are lanes; splitter.py and receive_stream.py decide on paths and order.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from time import time_ns

from weft.client.lanes.busy_poll import Looking, has_cores
from weft.client.lanes.connection_api import LaneConnection
from weft.client.lanes.handshake import Invitation
from weft.client.lanes.lane import Lane
from weft.client.lanes.publisher_side import Offers
from weft.client.lanes.receive_stream import Run
from weft.client.lanes.receiver_side import Invitations
from weft.client.lanes.shutdown import LaneEnds
from weft.client.lanes.splitter import FIRST_SEQUENCE, Splitter
from weft.client.lanes.table import LaneTable
from weft.client.lanes.transport import LaneTransport
from weft.client.requests.waiters import Several
from weft.client.status import Status, What
from weft.errors import BadMessage, NotAllowed, ProtocolError, ResponderGone
from weft.wire.frames import HEADER_BYTES, Flag, Kind
from weft.wire.lane_messages import lane_frame, word_in
from weft.wire.message.message import Message

# Interval for reporting counts and checking lanes.
TICK_S = 0.5
# A lane without acknowledgements for this long ends: while its window is full, and otherwise.
SLOW_S = 0.5
DEAD_S = 3.0
# How long to wait for a call from a peer that was invited to call, before calling it.
CALLED_S = 1.0
# Limit on held messages of one client while its lane is behind.
HELD_MAX_BYTES = 8 << 20

_MESSAGE = bytes([Kind.MESSAGE])
_REQUEST = int(Flag.REQUEST)
_SUBJECT = HEADER_BYTES


class LaneManager:
    """The lanes of one connection, as publisher and as receiver."""

    def __init__(self, gate: LaneConnection, *, is_required: bool, is_looking: bool) -> None:
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
        # Lanes awaited from calling peers, by peer number.
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

    # Called by the engine.

    @property
    def is_needed(self) -> bool:
        """Whether published frames must be split among paths."""
        return self.splitter.is_needed

    @property
    def refusals(self) -> int:
        """Number of unauthenticated connections and unpermitted frames refused."""
        return self._refused + self._invitations.listener.refused

    @property
    def may_send(self) -> bool:
        """Whether frames may be sent: no window is full, no lane of a lost gateway is ending."""
        return not (self.splitter.is_full or self.ends.is_waiting)

    def welcomed(self) -> None:
        """Handle a new gateway connection; peers have other numbers there."""
        self.ends.is_gateway_here = True
        session = self._session
        self.own_inbox = self.splitter.own_inbox = session.inbox + b"."
        stamp = self.splitter.stamp
        stamp.origin, stamp.publisher = session.origin, session.publisher
        stamp.sequence = FIRST_SEQUENCE

    def lost(self) -> None:
        """Handle the loss of the gateway: lanes deliver the data in flight and end."""
        self._offers.clear()
        self._invitations.lost()
        self.ends.part_all()
        # Their waiters have already failed.
        self.splitter.asked.clear()

    async def until_direct(self, subject: bytes) -> None:
        """Wait until a subject goes through lanes.

        Raises:
            NotDirect: The lanes were refused or could not be opened.
        """
        if subject not in self.splitter.routes:
            await self._offers.decided(subject)

    def split(self, view: memoryview, write: Callable[[memoryview], object]) -> None:
        """Send frames on their paths; `write` sends to the gateway."""
        self.splitter.stamp.time_ns = time_ns()
        data = view.obj
        if not isinstance(data, bytearray):
            raise TypeError("split() needs a memoryview of a bytearray, to stamp frames in place")
        splitter = self.splitter
        dropped, exchanges = splitter.dropped, splitter.exchanges
        splitter.split(data, len(view), write, self._loop.time())
        if splitter.exchanges != exchanges:
            self._looking.begin()
        if dropped == 0 and splitter.dropped:
            detail = "messages were dropped: direct='require', and there is no lane for them"
            self.reporter.report(Status(What.DROPPED, detail))

    def word(self, frame: bytes) -> None:
        """Handle a control message of the gateway about lanes.

        Raises:
            WeftError: Unknown or invalid message.
        """
        word, facts = word_in(frame)
        act = self._on.get(word)
        if act is None:
            raise BadMessage(f"unknown message {word!r} about lanes from the gateway")
        act(facts)

    def merge(self, run: Run) -> list[Run]:
        """Merge messages from the gateway with lane messages; return the ones to deliver now."""
        merged = self.table.merge(run, self._is_heard)
        for lane in self.table:
            self._check_held(lane)
        return merged

    def tail(self, frame: bytes) -> None:
        """Take a message from the gateway that a lane did not deliver."""
        lane = self.table.of_sender(frame)
        if lane is not None:
            lane.tail(frame[:4] + _MESSAGE + frame[5:])
            self._check_held(lane)

    def finish_all(self) -> None:
        """End every lane through the gateway, because the connection closes."""
        for lane in self.table:
            self.ends.finish(lane, "the connection is closed")

    def close(self) -> None:
        """Abort everything."""
        self._offers.clear()
        self._invitations.close()
        for lane in self.table:
            self.table.forget(lane)
            lane.wire.close()
        self.ends.close()
        if self._timer is not None:
            self._timer.cancel()

    def reconsider(self) -> None:
        """Handle a removed subscription: notify senders, drop held messages without a receiver."""
        for lane in self.table:
            for subject in (lane.serves | lane.shown) - lane.unserved:
                if not self.serves(subject):
                    lane.withdraw(subject)
            lane.incoming.withdraw(self._is_heard)

    # Called by offers and invitations.

    def serves(self, subject: bytes) -> bool:
        """Return whether a subject has subscriptions here, none of them in a queue group."""
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
        """Wait up to `CALLED_S` for a lane that a peer is about to open; None if it is not.

        When both peers are invited to call each other, one must wait, or each would refuse:
        the one with the higher number, unless the other is already in the handshake.
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

    def begin(
        self, wire: LaneTransport, invitation: Invitation, keys: tuple[bytes, bytes] | None
    ) -> Lane:
        """Open a lane over an authenticated transport; the first key encrypts, the second decrypts.

        Raises:
            NotAllowed: The gateway is lost, or another lane to this peer still exists.
        """
        if not self.ends.is_gateway_here:
            wire.close()
            raise NotAllowed("the gateway connection was lost meanwhile")
        if self.table.of(invitation.other.number) is not None:
            wire.close()
            raise NotAllowed("the previous lane between these clients has not ended yet")
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

    # Called by lanes.

    def refuse(self, count: int) -> None:
        """Count frames that the other end was not permitted to send."""
        self._refused += count

    def may_answer(self, lane: Lane, reply: bytes) -> bool:
        """Return whether the other end may answer to a reply subject of this connection.

        A request is answered by its responder only; a gather() by every receiver.
        """
        asked = self.splitter.asked.get(reply)
        if asked is not None:
            return asked == lane.other.number
        waiter = self._session.waiter(reply)
        return waiter is None or isinstance(waiter, Several)

    def deal(self, lane: Lane, runs: list[Run]) -> None:
        """Deliver the next messages in the stream of another client."""
        if runs:
            self._looking.came()
            self.gate.deal(runs)
        lane.wire.is_early = lane.incoming.is_lane_early
        self.gate.reading.steer()
        if lane.incoming.is_over:
            self.ends.sent_all(lane)

    def greeted(self, lane: Lane, word: str, facts: Message) -> None:
        """Handle a handshake message for a further subject on a lane.

        Raises:
            BadMessage: Unknown message.
        """
        greet = self._greets.get(word)
        if greet is None:
            raise BadMessage(f"unknown message {word!r} on a lane")
        greet(lane, facts)

    def not_served(self, lane: Lane, subject: bytes) -> None:
        """Handle the other end's notice that it no longer serves a subject."""
        direct = self.splitter.routes.get(subject)
        if direct is not None and lane.out in direct.outs:
            self._offers.decline(subject, f"{lane.other.name} does not serve it any more")

    # Stream control messages of peers, through the gateway.

    def _streamed(self, word: str, facts: Message) -> None:
        peer, number = facts.get_int64("peer"), facts.get_int64("lane")
        lane = self.table.of(peer)
        if lane is None or lane.number != number:
            if word == "tail":
                # The other end waits for the end of a lane that was never opened here.
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
            # The error is the other client's, not the gateway's.
            self.refuse(1)
            self.ends.give_up(lane, str(error))

    def _check_held(self, lane: Lane) -> None:
        """End a lane whose held messages exceed `HELD_MAX_BYTES`."""
        if lane.incoming.held_bytes > HELD_MAX_BYTES:
            self.refuse(1)
            self.ends.give_up(lane, f"over {HELD_MAX_BYTES} bytes are held for its lane")

    def _is_over(self, facts: Message) -> None:
        number = facts.get_int64("peer")
        reason = str(facts.get("reason", ""))
        # Its lane may have ended before.
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

    # Periodic check.

    def _tick(self) -> None:
        self._timer = self._loop.call_later(TICK_S, self._tick) if self.table else None
        now = self._loop.time()
        # A program that was blocked received nothing, whatever the peers did.
        was_still = now - self._ticked_at > 2 * TICK_S
        self._ticked_at = now
        self._offers.tell_counts()
        for lane in self.table:
            waited_s = now - lane.progress_at
            if lane.incoming.taken != lane.heard:
                lane.heard, lane.heard_at = lane.incoming.taken, now
            is_idle = lane.out.is_settled or self.ends.is_parting(lane)
            if was_still or is_idle or not lane.is_waited_for:
                # Data sent just before may not have arrived yet.
                lane.progress_at = now
                lane.is_waited_for = not is_idle
            elif waited_s >= (SLOW_S if lane.out.is_full else DEAD_S):
                self.ends.finish(
                    lane, f"{lane.other.name} acknowledged nothing for {waited_s:.1f} s"
                )
        self.ends.release_unused()
        asked = self.splitter.asked
        for reply in [reply for reply in asked if self._session.waiter(reply) is None]:
            del asked[reply]

    def _lost(self, lane: Lane, reason: str) -> None:
        """Send nothing more through a lane."""
        self._offers.lane_lost(lane, reason)
        self._invitations.lane_lost(lane)
