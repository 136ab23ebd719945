"""A lane at either end: sent and received messages over one transport."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from weft.client.lanes.handshake import Invitation
from weft.client.lanes.receive_stream import In, Run, Unheard
from weft.client.lanes.send_stream import WINDOW_BYTES, Out
from weft.client.lanes.splitter import Splitter
from weft.client.lanes.transport import LaneTransport
from weft.errors import NotAllowed, ProtocolError, UnexpectedFrame, Unreachable
from weft.wire.frame_senders import all_from, replies_in
from weft.wire.frames import HEADER_BYTES, RESERVED_FLAGS, Flag, Kind
from weft.wire.lane_messages import lane_frame, word_in
from weft.wire.message.message import Message
from weft.wire.subjects import is_subject

# Acknowledge after this many bytes, or with the first read after this many seconds: at that moment
# the next message is furthest away, so that the ack delays nothing.
ACK_BYTES = 256 << 10
ACK_S = 0.005
# Maximum delay of an acknowledgement if no further read follows.
ACK_LATEST_S = 0.007
# Limit on unsent control messages to a peer that does not read, behind its messages.
UNSENT_MAX_BYTES = 2 * WINDOW_BYTES

_MESSAGE = int(Kind.MESSAGE)
_LANE = int(Kind.LANE)
_REQUEST = int(Flag.REQUEST)
_SUBJECT = HEADER_BYTES


class LaneEndings(Protocol):
    """Interface for the end of lanes."""

    def took_more(self, lane: "Lane") -> None:
        """Handle an acknowledgement by the other end."""

    def part(self, lane: "Lane") -> None:
        """Handle the other end's notice that it sends nothing more through the lane."""

    def broke(self, lane: "Lane", reason: str) -> None:
        """Handle the loss of the transport."""


class LaneOwner(Protocol):
    """Interface of the lane manager for its lanes."""

    own_inbox: bytes
    splitter: Splitter

    @property
    def ends(self) -> LaneEndings:
        """The object that ends lanes."""

    def refuse(self, count: int) -> None:
        """Count frames that the other end was not permitted to send."""

    def may_answer(self, lane: "Lane", reply: bytes) -> bool:
        """Return whether the other end may answer to a reply subject of this connection."""

    def deal(self, lane: "Lane", runs: list[Run]) -> None:
        """Deliver the next messages in the stream of the other end."""

    def greeted(self, lane: "Lane", word: str, facts: Message) -> None:
        """Handle a handshake message for a further subject."""

    def not_served(self, lane: "Lane", subject: bytes) -> None:
        """Handle the other end's notice that it no longer serves a subject."""


class Lane:
    """An authenticated lane."""

    def __init__(
        self, invitation: Invitation, origin: int, wire: LaneTransport, lanes: LaneOwner
    ) -> None:
        other = self.other = invitation.other
        self.number = invitation.lane
        self.wire = wire
        self.out = Out(other.number, self.number, wire.write)
        self.incoming = In()
        # Subjects that the other end may send here, and subjects that this end stopped serving.
        self.serves: set[bytes] = set()
        self.unserved: set[bytes] = set()
        # Subjects it has shown a ticket for: tail messages may arrive before the proof.
        self.shown: set[bytes] = set()
        # By subject that was withdrawn and shown again: the first item to deliver.
        self._heard_from: dict[bytes, int] = {}
        # Subjects of its permitted requests, and its inbox.
        self._answers: set[bytes] = set()
        self._other_inbox = b""
        # This end called: it ends the lane once no route uses it and no pending offer claims it.
        self.is_caller = False
        self.claims = 0
        # True once the gateway forwards nothing more from the other end.
        self.is_alone = False
        # Loop time since which nothing of the data in flight was acknowledged, if there is any.
        self.progress_at = 0.0
        self.is_waited_for = False
        # Loop time at which the other end's items were last taken, and their number then.
        self.heard_at = 0.0
        self.heard = 0
        # Origin and publisher number that its messages must carry.
        self.identity = origin.to_bytes(4, "little") + (other.number & 0xFFFFFFFF).to_bytes(
            4, "little"
        )
        self._lanes = lanes
        self._loop = asyncio.get_running_loop()
        # Completed by the first acknowledgement, which shows that the other end has begun, too.
        self.confirmed: asyncio.Future[None] = self._loop.create_future()
        # Also set if that message is lost with the transport, but others arrive by the gateway.
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
        """Whether the transport is connected."""
        return self.wire.line is not None

    def is_for(self, invitation: Invitation) -> bool:
        """Return whether a further subject may use this lane."""
        is_sealed_enough = self.wire.is_sealed or not invitation.is_sealed
        return invitation.other.number == self.other.number and is_sealed_enough

    def serve(self, invitation: Invitation) -> None:
        """Accept a subject from the other end, which has proven its ticket."""
        subject = invitation.subject
        self.serves.add(subject)
        self._other_inbox = invitation.inbox
        if invitation.may_ask:
            self._answers.add(subject)
        else:
            self._answers.discard(subject)

    def show(self, subject: bytes) -> None:
        """Accept a new ticket for a subject: messages after it are delivered."""
        self.shown.add(subject)
        if subject in self.unserved:
            self.unserved.discard(subject)
            self._heard_from[subject] = self.incoming.arrived

    def withdraw(self, subject: bytes) -> None:
        """Notify the other end that a subject has no subscription here any more.

        Messages in flight are dropped, even if there is a new subscription by then: the gateway
        confirms it only after the other end has left the lane for this subject.
        """
        self.unserved.add(subject)
        self.wire.write(lane_frame("unserved", subject))

    def took(self, run: list[bytes]) -> None:
        """Take received frames.

        Raises:
            WeftError: Frames that are invalid or not permitted on a lane; the lane ends.
        """
        kind = run[0][4]
        if kind == _MESSAGE:
            self._messages(run)
        elif kind == _LANE:
            for frame in run:
                self._word(frame)
        else:
            raise UnexpectedFrame(f"frame of kind {kind} on a lane")

    def read_all(self) -> None:
        """Acknowledge the messages of one read, now or soon."""
        if self.incoming.taken == self._told:
            return
        if self.wire.received_bytes - self._told_bytes >= ACK_BYTES:
            self.tell_taken()
        elif self._timer is None:
            self._ack_at = self._loop.time() + ACK_S
            self._timer = self._loop.call_later(ACK_LATEST_S, self.tell_taken)
        elif self._loop.time() >= self._ack_at:
            # Handlers of the messages just read run first.
            self._stop_timer()
            self._loop.call_soon(self.tell_taken)

    def overstepped(self) -> None:
        """Count a violation by the other end, for which it loses the lane."""
        self._lanes.refuse(1)

    def broke(self, reason: str) -> None:
        """Handle the loss of the transport."""
        self._stop_timer()
        if not self.confirmed.done():
            self.confirmed.set_exception(
                Unreachable(f"{self.other.name} closed the connection: {reason}")
            )
            # Retrieved here, because no task awaits it at the end that was called.
            self.confirmed.exception()
        self._lanes.ends.broke(self, reason)

    def tell(self, word: bytes) -> None:
        """Send a control message that answers one of the other end.

        Raises:
            ProtocolError: The other end sends control messages without reading the answers.
        """
        if self.wire.unsent_bytes > UNSENT_MAX_BYTES:
            raise ProtocolError(
                f"{self.other.name} sends control messages without reading the answers"
            )
        self.wire.write(word)

    def tell_taken(self) -> None:
        """Send an acknowledgement; if the other end does not read, try again later."""
        self._stop_timer()
        if self.wire.unsent_bytes > UNSENT_MAX_BYTES:
            self._timer = self._loop.call_later(ACK_LATEST_S, self.tell_taken)
            return
        self._told = self.incoming.taken
        self._told_bytes = self.wire.received_bytes
        self.wire.write(lane_frame("ack", count=self._told))

    def say_end(self) -> None:
        """Send the notice that nothing more follows on the lane."""
        self.wire.write(lane_frame("end", count=self.out.sent))

    def _messages(self, run: list[bytes]) -> None:
        if self.incoming.is_over:
            return
        first = run[0]
        subject = first[_SUBJECT : _SUBJECT + first[6]]
        is_answer = subject.startswith(self._lanes.own_inbox)
        if subject not in self.serves and not is_answer:
            raise NotAllowed(f"{self.other.name} sent a subject on its lane without a ticket")
        if not all_from(run, self.identity):
            raise NotAllowed(
                f"{self.other.name} sent a message on its lane with the origin of another client"
            )
        if first[5] & RESERVED_FLAGS:
            raise NotAllowed(
                f"{self.other.name} sent a message on its lane with flags reserved for gateways"
            )
        if first[5] & _REQUEST and subject not in self._answers:
            raise NotAllowed(
                f"{self.other.name} sent a request on its lane without a ticket that permits it"
            )
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
        """Take a message from the gateway that the lane did not deliver."""
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
        """Route answers to these reply subjects through the lane; they must be in its inbox."""
        inbox = self._other_inbox
        for reply in replies:
            if not inbox or not reply.startswith(inbox) or not is_subject(reply):
                raise NotAllowed(
                    f"{self.other.name} sent a reply subject on its lane that is not in its inbox"
                )
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
        # The waiting task may have given up.
        if not self.confirmed.done():
            self.confirmed.set_result(None)
        before = self.out.acked
        if not self.out.ack(facts.get_int64("count")):
            raise ProtocolError(f"{self.other.name} acknowledged more than was sent")
        # Repeated acknowledgements of the same count are no progress.
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
