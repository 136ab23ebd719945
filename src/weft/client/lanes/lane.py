"""One lane, at either end: what goes by it, and what comes, over one wire."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from weft.client.lanes.handshake import Invitation
from weft.client.lanes.receive_stream import In, Run, Unheard
from weft.client.lanes.send_stream import WINDOW_BYTES, Out
from weft.client.lanes.splitter import Splitter
from weft.client.lanes.transport import Wire
from weft.errors import NotAllowed, ProtocolError, UnexpectedFrame, Unreachable
from weft.wire.frame_senders import all_from, replies_in
from weft.wire.frames import HEADER_BYTES, RESERVED_FLAGS, Flag, Kind
from weft.wire.lane_messages import lane_frame, word_in
from weft.wire.message.message import Message
from weft.wire.subjects import is_subject

# The other end is told what was taken after so many bytes, or with the first read after so long:
# then the next message is furthest away, and waits for nobody who is busy with an ack.
ACK_BYTES = 256 << 10
ACK_S = 0.005
# If no read comes then, so long after the first that was not told of.
ACK_LATEST_S = 0.007
# What of the words for somebody who does not read may wait in the socket, behind its messages.
UNSENT_MAX_BYTES = 2 * WINDOW_BYTES

_MESSAGE = int(Kind.MESSAGE)
_LANE = int(Kind.LANE)
_REQUEST = int(Flag.REQUEST)
_SUBJECT = HEADER_BYTES


class Ends(Protocol):
    """Whoever deals with the ends of lanes."""

    def took_more(self, lane: "Lane") -> None:
        """The other end has taken more."""

    def part(self, lane: "Lane") -> None:
        """The other end sends nothing more by the lane."""

    def broke(self, lane: "Lane", reason: str) -> None:
        """The wire is gone."""


class Owner(Protocol):
    """Whoever has lanes, as each of them knows it."""

    own_inbox: bytes
    splitter: Splitter

    @property
    def ends(self) -> Ends:
        """Who deals with the ends of lanes."""

    def refuse(self, count: int) -> None:
        """Count what the other end may not do."""

    def may_answer(self, lane: "Lane", reply: bytes) -> bool:
        """Say if what comes to an own reply subject may come from the other end of a lane."""

    def deal(self, lane: "Lane", runs: list[Run]) -> None:
        """Messages are next in the stream of the other end."""

    def greeted(self, lane: "Lane", word: str, facts: Message) -> None:
        """A word of the greeting for a further subject."""

    def not_served(self, lane: "Lane", subject: bytes) -> None:
        """The other end does not serve a subject any more."""


class Lane:
    """A lane that is proven."""

    def __init__(self, invitation: Invitation, origin: int, wire: Wire, lanes: Owner) -> None:
        other = self.other = invitation.other
        self.number = invitation.lane
        self.wire = wire
        self.out = Out(other.number, self.number, wire.write)
        self.incoming = In()
        # What the other end may send here, and what of it was said not to be served any more.
        self.serves: set[bytes] = set()
        self.unserved: set[bytes] = set()
        # What it has shown a ticket for: a tail of that may come before it is proven.
        self.shown: set[bytes] = set()
        # By subject that was withdrawn and shown again: the first item that is heard.
        self._heard_from: dict[bytes, int] = {}
        # What it may ask for here, and where it awaits answers.
        self._answers: set[bytes] = set()
        self._other_inbox = b""
        # This end called, and ends the lane when no route goes by it, and nothing else claims it.
        self.is_caller = False
        self.claims = 0
        # Nothing more of the other end comes through a gateway.
        self.is_alone = False
        # Of the loop: since when nothing was confirmed that is under way, if anything is.
        self.progress_at = 0.0
        self.is_waited_for = False
        # When something was last taken of what the other end sends, and how much until then.
        self.heard_at = 0.0
        self.heard = 0
        # What its messages must say of where they come from.
        self.identity = origin.to_bytes(4, "little") + (other.number & 0xFFFFFFFF).to_bytes(
            4, "little"
        )
        self._lanes = lanes
        self._loop = asyncio.get_running_loop()
        # Set once the other end has begun, too: its first word says so.
        self.confirmed: asyncio.Future[None] = self._loop.create_future()
        # The same, also if that word is lost with the wire: others come through the gateway.
        self.is_confirmed = False
        self._told = 0
        self._told_bytes = 0
        self._ack_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._on: dict[str, Callable[[Message], None]] = {
            "switch": self._switched,
            "ack": self._acked,
            "end": self._ended,
            "unserved": self._unserved,
        }

    @property
    def is_open(self) -> bool:
        """Say if bytes can be sent and come."""
        return self.wire.line is not None

    def is_for(self, invitation: Invitation) -> bool:
        """Say if a further subject may go by this lane."""
        is_sealed_enough = self.wire.is_sealed or not invitation.is_sealed
        return invitation.other.number == self.other.number and is_sealed_enough

    def serve(self, invitation: Invitation) -> None:
        """Take a subject from the other end, which has proven that it may send it."""
        subject = invitation.subject
        self.serves.add(subject)
        self._other_inbox = invitation.inbox
        if invitation.may_ask:
            self._answers.add(subject)
        else:
            self._answers.discard(subject)

    def show(self, subject: bytes) -> None:
        """The other end shows a new ticket for a subject: what follows it on the lane is heard."""
        self.shown.add(subject)
        if subject in self.unserved:
            self.unserved.discard(subject)
            self._heard_from[subject] = self.incoming.arrived

    def withdraw(self, subject: bytes) -> None:
        """Tell the other end that a subject has no subscription here any more.

        Messages still in flight are dropped, also if there is a new subscription by then: the
        gateway confirms that only after the other end has left the lane for this subject.
        """
        self.unserved.add(subject)
        self.wire.write(lane_frame("unserved", subject))

    def took(self, run: list[bytes]) -> None:
        """Frames came by the lane.

        Raises:
            WeftError: they cannot come here; the lane ends.
        """
        kind = run[0][4]
        if kind == _MESSAGE:
            self._messages(run)
        elif kind == _LANE:
            for frame in run:
                self._word(frame)
        else:
            raise UnexpectedFrame(f"a lane does not carry frames of kind {kind}")

    def read_all(self) -> None:
        """One read was dealt with: say what was taken, now or soon."""
        if self.incoming.taken == self._told:
            return
        if self.wire.received_bytes - self._told_bytes >= ACK_BYTES:
            self.tell_taken()
        elif self._timer is None:
            self._ack_at = self._loop.time() + ACK_S
            self._timer = self._loop.call_later(ACK_LATEST_S, self.tell_taken)
        elif self._loop.time() >= self._ack_at:
            # Whoever hears what was just read comes first.
            self._stop_timer()
            self._loop.call_soon(self.tell_taken)

    def overstepped(self) -> None:
        """The other end did what it may not, and loses the lane for it."""
        self._lanes.refuse(1)

    def broke(self, reason: str) -> None:
        """The wire is gone."""
        self._stop_timer()
        if not self.confirmed.done():
            self.confirmed.set_exception(Unreachable(f"{self.other.name} hung up: {reason}"))
            # At the end that was called nobody waits for it.
            self.confirmed.exception()
        self._lanes.ends.broke(self, reason)

    def tell(self, word: bytes) -> None:
        """Answer a word of the other end.

        Raises:
            ProtocolError: it asks for more and more, and reads nothing.
        """
        if self.wire.unsent_bytes > UNSENT_MAX_BYTES:
            raise ProtocolError(f"{self.other.name} does not read what it asks for")
        self.wire.write(word)

    def tell_taken(self) -> None:
        """Tell the other end what was taken; once it reads again, if it does not."""
        self._stop_timer()
        if self.wire.unsent_bytes > UNSENT_MAX_BYTES:
            self._timer = self._loop.call_later(ACK_LATEST_S, self.tell_taken)
            return
        self._told = self.incoming.taken
        self._told_bytes = self.wire.received_bytes
        self.wire.write(lane_frame("ack", count=self._told))

    def say_end(self) -> None:
        """Say on the lane that nothing more comes by it."""
        self.wire.write(lane_frame("end", count=self.out.sent))

    def _messages(self, run: list[bytes]) -> None:
        if self.incoming.is_over:
            return
        first = run[0]
        subject = first[_SUBJECT : _SUBJECT + first[6]]
        is_answer = subject.startswith(self._lanes.own_inbox)
        if subject not in self.serves and not is_answer:
            raise NotAllowed(f"{self.other.name} has no ticket for what it sent by its lane")
        if not all_from(run, self.identity):
            raise NotAllowed(f"{self.other.name} sent in the name of another by its lane")
        if first[5] & RESERVED_FLAGS:
            raise NotAllowed(f"{self.other.name} sent what only a gateway may by its lane")
        if first[5] & _REQUEST and subject not in self._answers:
            raise NotAllowed(f"{self.other.name} has no ticket to ask for anything by its lane")
        if replies := replies_in(run):
            self._note(replies)
        item: Run | Unheard = run
        if is_answer:
            if not self._lanes.may_answer(self, subject):
                item = self._refused(len(run))
        elif subject in self.unserved:
            item = Unheard(len(run))
        self._lanes.deal(self, self.incoming.by_lane(item))

    def tail(self, message: bytes) -> None:
        """A message came through the gateway that the lane was to bring."""
        subject = message[_SUBJECT : _SUBJECT + message[6]]
        is_own = subject.startswith(self._lanes.own_inbox)
        is_allowed = (
            self._lanes.may_answer(self, subject)
            if is_own
            else subject in self.serves or subject in self.shown
        ) and not message[5] & RESERVED_FLAGS
        item: Run | Unheard = [message]
        if not is_allowed:
            item = self._refused(1)
        elif subject in self.unserved or self.incoming.arrived < self._heard_from.get(subject, 0):
            item = Unheard(1)
        self._lanes.deal(self, self.incoming.by_tail(item))

    def _refused(self, count: int) -> Unheard:
        self._lanes.refuse(count)
        return Unheard(count)

    def _note(self, replies: list[bytes]) -> None:
        """Have answers go back by the lane, to whoever asked and to nobody else."""
        inbox = self._other_inbox
        for reply in replies:
            if not inbox or not reply.startswith(inbox) or not is_subject(reply):
                raise NotAllowed(f"{self.other.name} has answers to its lane sent elsewhere")
        if not self.out.is_over:
            self._lanes.splitter.note_replies(replies, self.out)

    def _word(self, frame: bytes) -> None:
        word, facts = word_in(frame)
        act = self._on.get(word)
        if act is not None:
            act(facts)
        else:
            self._lanes.greeted(self, word, facts)

    def _switched(self, facts: Message) -> None:
        self._lanes.deal(self, self.incoming.switched_by_lane(facts.get_int64("number")))

    def _acked(self, facts: Message) -> None:
        self.is_confirmed = True
        # Whoever waited for it may have given up.
        if not self.confirmed.done():
            self.confirmed.set_result(None)
        before = self.out.acked
        if not self.out.ack(facts.get_int64("count")):
            raise ProtocolError(f"{self.other.name} took what it was not sent")
        # Whoever says again and again what it took before has taken nothing.
        if self.out.acked > before:
            self._lanes.ends.took_more(self)

    def _ended(self, facts: Message) -> None:
        self._lanes.deal(self, self.incoming.end(facts.get_int64("count")))
        self.tell_taken()
        self._lanes.ends.part(self)

    def _unserved(self, facts: Message) -> None:
        self._lanes.not_served(self, facts.subject.encode())

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
