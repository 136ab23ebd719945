"""The lanes of one connection: what the gateway says of them, and what goes and comes by them.

Everything here runs on the loop's thread. The engine gives it what is to be sent, and what comes
through the gateway while there are lanes; fabric/splitting.py and lane_in.py say what goes where.
"""

import asyncio
import os
from collections.abc import Callable
from time import time_ns
from typing import Protocol

from weft.client.lane import Lane
from weft.client.lane_caller import Caller
from weft.client.lane_greeting import Other
from weft.client.lane_invitations import Invitations
from weft.client.lane_offers import Offers
from weft.client.lane_wire import Wire
from weft.client.reading import Reading
from weft.client.session import Session
from weft.client.status import Gap, Reporter, Status, What
from weft.client.subscriptions import Subscriptions
from weft.core.frames import Kind
from weft.core.lane_words import lane_frame, word_in
from weft.core.messages import Message
from weft.errors import BadMessage, NotAllowed, ResponderGone, WeftError
from weft.fabric.lane_in import Run
from weft.fabric.splitting import FIRST_SEQUENCE, Splitter

# How often counts are told, and lanes looked after.
TICK_S = 0.5
# A lane on which nothing is confirmed for so long is given up: while it is full, and otherwise.
SLOW_S = 0.5
DEAD_S = 3.0
# How long the last words on a lane may take when the gateway is gone.
PARTING_S = 2.0

_MESSAGE = bytes([Kind.MESSAGE])


class Gate(Protocol):
    """What lanes need of their connection."""

    session: Session
    subscriptions: Subscriptions
    reading: Reading
    reporter: Reporter

    def tell_gateway(self, frame: bytes) -> None:
        """Send a frame to the gateway, after all that was sent before."""

    def deal(self, runs: list[Run]) -> None:
        """Hand messages to whoever wants them."""

    def flush(self) -> None:
        """Send what is buffered."""

    def gone(self, replies: list[bytes], error: WeftError) -> None:
        """Whoever was asked by a lane is gone: no answer to these comes."""

    def local_host(self) -> str:
        """The address of this machine by which the gateway knows it."""


class Lanes:
    """All of them, at both ends."""

    def __init__(self, gate: Gate, *, is_required: bool) -> None:
        self.gate = gate
        self.reporter = gate.reporter
        self.splitter = Splitter(is_required=is_required)
        self.own_inbox = b""
        self._session = gate.session
        self._subscriptions = gate.subscriptions
        self._reading = gate.reading
        self._loop = asyncio.get_running_loop()
        self._lanes: dict[int, Lane] = {}
        self._by_identity: dict[bytes, Lane] = {}
        self._offers = Offers(self)
        self._invitations = Invitations(self)
        # Lanes that come to their end by themselves; after a gateway was lost nothing is sent
        # through the next one before that.
        self._parting: set[Lane] = set()
        self._is_waiting = False
        self._is_gateway_here = False
        self._settled: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._on: dict[str, Callable[[Message], None]] = {
            "invite": self._invitations.invited,
            "offer": self._offers.offered,
            "withdraw": self._offers.withdrawn,
            "switch": self._switched,
            "tail": self._tailed,
            "end": self._ended,
            "over": self._is_over,
        }

    # What the engine calls.

    @property
    def is_needed(self) -> bool:
        """Say if what is sent must be split."""
        return self.splitter.is_needed

    @property
    def may_send(self) -> bool:
        """Say if there is room for more, and nothing that must come to its end before."""
        if self._is_waiting and not self._parting:
            self._is_waiting = False
        return not self._is_waiting and not self.splitter.is_full

    def welcomed(self) -> None:
        """A gateway is there, perhaps another one: connections have other numbers."""
        self._is_gateway_here = True
        session = self._session
        self.own_inbox = session.inbox + b"."
        stamp = self.splitter.stamp
        stamp.origin, stamp.publisher = session.origin, session.publisher
        stamp.sequence = FIRST_SEQUENCE

    def lost(self) -> None:
        """The gateway is gone: lanes are used up, and nothing new goes by them."""
        self._is_gateway_here = False
        self._offers.clear()
        self.splitter.inboxes.clear()
        self._is_waiting = True
        for lane in list(self._lanes.values()):
            self.parted(lane)

    async def until_direct(self, subject: bytes) -> None:
        """Wait until a subject goes by lanes.

        Raises:
            NotDirect: it does not come to that.
        """
        if subject not in self.splitter.routes:
            await self._offers.decided(subject)

    async def settled(self) -> None:
        """Wait until everything that went by lanes was taken."""
        while any(not lane.out.is_settled for lane in self._lanes.values()):
            changed: asyncio.Future[None] = self._loop.create_future()
            self._settled.append(changed)
            await changed

    def split(self, view: memoryview, write: Callable[[memoryview], object]) -> None:
        """Send what is next on its ways."""
        self.splitter.stamp.time_ns = time_ns()
        data = view.obj
        if not isinstance(data, bytearray):
            raise TypeError("only what lies in a bytearray can be stamped in place")
        before = self.splitter.dropped
        self.splitter.split(data, len(view), write, self._loop.time())
        if before == 0 and self.splitter.dropped:
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

    def tail(self, frame: bytes) -> None:
        """A message came through the gateway that a lane did not bring."""
        lane = self._by_identity.get(frame[8:16])
        if lane is not None:
            message = frame[:4] + _MESSAGE + frame[5:]
            self.deal(lane, lane.incoming.by_tail(message))

    def merge(self, run: Run) -> list[Run]:
        """Messages came through the gateway: what of them is next, now."""
        if not any(lane.incoming.is_holding for lane in self._lanes.values()):
            return [run]
        merged: list[Run] = []
        for frame in run:
            lane = self._by_identity.get(frame[8:16])
            merged += [[frame]] if lane is None else lane.incoming.by_gateway([frame])
        return merged

    def finish_all(self) -> None:
        """End every lane through the gateway, because the connection ends."""
        for lane in list(self._lanes.values()):
            self.finish(lane, "the connection is closed")

    def close(self) -> None:
        """Nothing comes or goes any more."""
        self._is_gateway_here = False
        self._offers.clear()
        self._invitations.close()
        for lane in list(self._lanes.values()):
            self._forget(lane)
            lane.wire.close()
        if self._timer is not None:
            self._timer.cancel()

    def reconsider(self) -> None:
        """A subscription went: tell those who send here what is not served any more."""
        for lane in self._lanes.values():
            for subject in lane.serves - lane.unserved:
                if not self.serves(subject):
                    lane.unserved.add(subject)
                    lane.wire.write(lane_frame("unserved", subject))

    # What offers and invitations call.

    def chance(self, length: int) -> bytes:
        """Bytes that nobody can guess."""
        return os.urandom(length)

    def lane_of(self, number: int) -> Lane | None:
        """The lane to a connection."""
        return self._lanes.get(number)

    def serves(self, subject: bytes) -> bool:
        """Say if somebody here hears a subject, and not as one of a group."""
        found = self._subscriptions.interests.find(subject)
        return bool(found) and not any(each.group for each in found)

    def begin_called(self, caller: Caller) -> Lane:
        """Both ends of a call are proven."""
        proofs = caller.calling.proofs
        invitation = caller.calling.invitation
        keys = proofs.keys() if proofs is not None and invitation.is_sealed else None
        lane = self.begin(caller.wire, invitation.other, keys)
        lane.is_caller = True
        return lane

    def begin(self, wire: Wire, other: Other, keys: tuple[bytes, bytes] | None) -> Lane:
        """Use a wire whose ends are proven; what this end says is sealed with the first key."""
        if not self._is_gateway_here:
            wire.close()
            raise NotAllowed("the gateway is gone meanwhile")
        lane = Lane(other, self._session.origin, wire, self)
        wire.speaker = lane
        wire.begin(self._session.body_limit_bytes, keys)
        self._lanes[other.number] = lane
        self._by_identity[lane.identity] = lane
        self._reading.wires.add(wire)
        self._session.has_lanes = True
        self.splitter.add(lane.out)
        self.splitter.inboxes[other.inbox] = lane.out
        lane.progress_at = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(TICK_S, self._tick)
        return lane

    def release_unused(self) -> None:
        """Send nothing more by lanes that no route goes by; they end once all was taken."""
        for lane in list(self._lanes.values()):
            if self._is_unused(lane):
                self.splitter.leave(lane.out, self.gate.tell_gateway)
                self.splitter.inboxes.pop(lane.other.inbox, None)
                self._finish_if_done(lane)

    def use(self, lanes: list[Lane]) -> None:
        """Routes go by these from here on; answers, too."""
        for lane in lanes:
            self.splitter.inboxes[lane.other.inbox] = lane.out

    def finish(self, lane: Lane, reason: str) -> None:
        """End a lane; what the other end has not confirmed goes to it through the gateway."""
        if not lane.out.is_over:
            self._offers.lane_lost(lane, reason)
            self._retire(lane)
            lost = not lane.out.is_settled
            told = lane.out.finish(with_tail=not self.splitter.is_required)
            if self._is_gateway_here:
                self.gate.tell_gateway(b"".join(told))
            elif lost:
                detail = f"what went by the lane to {lane.other.name} at last may be lost"
                self.reporter.report(Status(What.GAP, detail))
        if lane.is_open:
            lane.wire.close(reason)
        self._forget_if_over(lane)
        self._changed()

    # What lanes call.

    def deal(self, lane: Lane, runs: list[Run]) -> None:
        """Messages are next in the stream of another client."""
        if runs:
            self.gate.deal(runs)
        lane.wire.is_early = lane.incoming.is_lane_early
        self._reading.steer()
        if lane.incoming.is_over:
            self._announce(lane)
            self._forget_if_over(lane)
            self._end_if_parted(lane)

    def greeted(self, lane: Lane, word: str, facts: Message) -> None:
        """A word about a further subject came by a lane."""
        if word == "hello":
            self._invitations.hello(lane, facts)
        elif word == "prove":
            self._invitations.proven(lane, facts)
        elif word == "serve":
            self._offers.served(lane, facts)
        elif word == "refused":
            self._offers.refused(lane, facts)
        else:
            raise BadMessage(f"a lane does not carry the word {word!r}")

    def acked(self, lane: Lane) -> None:
        """The other end has taken more: there is room."""
        lane.progress_at = self._loop.time()
        if lane in self._parting:
            self._end_if_parted(lane)
        else:
            self._finish_if_done(lane)
        self._changed()

    def not_served(self, lane: Lane, subject: bytes) -> None:
        """The other end does not serve a subject any more."""
        if subject in self.splitter.routes:
            reason = f"{lane.other.name} does not serve it any more"
            self._offers.relay(subject, reason)
            self.gate.tell_gateway(lane_frame("declined", subject, reason=reason))

    def broke(self, lane: Lane, reason: str) -> None:
        """The wire of a lane is gone."""
        if lane in self._parting:
            self._end_parting(lane)
        elif self._lanes.get(lane.other.number) is lane:
            self.finish(lane, f"the lane to {lane.other.name} broke: {reason}")

    # What the gateway says of streams.

    def _switched(self, facts: Message) -> None:
        lane = self._lanes.get(facts.get_int64("peer"))
        if lane is not None:
            self.deal(lane, lane.incoming.switched_by_gateway(facts.get_int64("number")))

    def _tailed(self, facts: Message) -> None:
        lane = self._lanes.get(facts.get_int64("peer"))
        if lane is not None:
            self.deal(lane, lane.incoming.tail(facts.get_int64("from")))
            self.finish(lane, f"{lane.other.name} ended the lane")

    def _ended(self, facts: Message) -> None:
        lane = self._lanes.get(facts.get_int64("peer"))
        if lane is not None:
            self.deal(lane, lane.incoming.end(facts.get_int64("count")))

    def _is_over(self, facts: Message) -> None:
        lane = self._lanes.get(facts.get_int64("peer"))
        if lane is None:
            return
        reason = str(facts.get("reason", ""))
        asked = [reply for reply, out in self.splitter.asked.items() if out is lane.out]
        for reply in asked:
            del self.splitter.asked[reply]
        self.gate.gone(asked, ResponderGone(f"{lane.other.name}: {reason}"))
        self._offers.lane_lost(lane, reason)
        if facts.get("gone", False):
            # What it said at last may still be under way.
            self.parted(lane)
        else:
            self._end_parting(lane)

    # What time brings.

    def _tick(self) -> None:
        self._timer = self._loop.call_later(TICK_S, self._tick) if self._lanes else None
        now = self._loop.time()
        if self._is_gateway_here:
            self._offers.tell_counts()
        for lane in list(self._lanes.values()):
            waited_s = now - lane.progress_at
            if lane.out.is_settled:
                lane.progress_at = now
            elif waited_s >= (SLOW_S if lane.out.is_full else DEAD_S):
                self.finish(lane, f"{lane.other.name} took nothing for {waited_s:.1f} s")
        self._drop_answered()

    def _drop_answered(self) -> None:
        """Forget who was asked what is answered by now."""
        asked = self.splitter.asked
        for reply in [reply for reply in asked if self._session.waiter(reply) is None]:
            del asked[reply]

    # How lanes end.

    def _finish_if_done(self, lane: Lane) -> None:
        if self._is_unused(lane) and lane.out.is_settled:
            self.finish(lane, "no route goes by it any more")

    def _is_unused(self, lane: Lane) -> bool:
        """Say if this end has no use for a lane that it called for."""
        if not lane.is_caller or lane.claims or lane.out.is_over:
            return False
        return not any(lane.out in direct.outs for direct in self.splitter.routes.values())

    def parted(self, lane: Lane) -> None:
        """Bring a lane to its end without the gateway: the other end gets what is under way."""
        if lane in self._parting or self._lanes.get(lane.other.number) is not lane:
            return
        self._offers.lane_lost(lane, "the gateway is gone")
        self._retire(lane)
        self._parting.add(lane)
        if not lane.is_open or lane.out.is_over:
            self._end_parting(lane)
            return
        lane.say_end()
        self._loop.call_later(PARTING_S, self._end_parting, lane)
        self._end_if_parted(lane)

    def _end_if_parted(self, lane: Lane) -> None:
        if lane in self._parting and lane.out.is_settled and lane.incoming.is_over:
            self._end_parting(lane)

    def _end_parting(self, lane: Lane) -> None:
        """Let go a lane for which nothing more can be done."""
        self._parting.discard(lane)
        if self._lanes.get(lane.other.number) is not lane:
            return
        self._retire(lane)
        if not (lane.out.is_settled or lane.out.is_over):
            detail = f"what went by the lane to {lane.other.name} at last may be lost"
            self.reporter.report(Status(What.GAP, detail))
        self._forget(lane)
        self.gate.deal(lane.incoming.over())
        self._announce(lane)
        lane.wire.close("it is over")
        self._changed()

    def _retire(self, lane: Lane) -> None:
        """Send nothing new by a lane."""
        self._invitations.lane_lost(lane)
        self.splitter.inboxes.pop(lane.other.inbox, None)
        self.splitter.remove(lane.out)

    def _changed(self) -> None:
        """There may be room now, or nothing left to wait for."""
        waiting, self._settled = self._settled, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
        self.gate.flush()

    def _announce(self, lane: Lane) -> None:
        """Tell of what will not come, if anything."""
        incoming = lane.incoming
        if incoming.missing or incoming.is_cut_short:
            gap = Gap("lost", incoming.missing, self._session.origin)
            incoming.missing, incoming.is_cut_short = 0, False
            self._subscriptions.announce(gap, f"the lane from {lane.other.name} was cut short")

    def _forget_if_over(self, lane: Lane) -> None:
        if lane.out.is_over and lane.incoming.is_over:
            self._forget(lane)

    def _forget(self, lane: Lane) -> None:
        if self._lanes.get(lane.other.number) is lane:
            del self._lanes[lane.other.number]
            del self._by_identity[lane.identity]
            self._reading.wires.discard(lane.wire)
        self._session.has_lanes = bool(self._lanes)
