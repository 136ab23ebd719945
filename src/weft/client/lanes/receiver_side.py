"""Receiver's side of lanes: listens on invitations, authenticates publishers."""

import asyncio
from typing import TYPE_CHECKING

from weft.client.lanes.encryption import can_seal
from weft.client.lanes.handshake import Invitation, Other, ReceiverHandshake
from weft.client.lanes.lane import Lane
from weft.client.lanes.listener import LaneListener
from weft.client.lanes.transport import LaneTransport
from weft.errors import NotAllowed, WeftError
from weft.wire.lane_messages import lane_frame
from weft.wire.message.message import Message

if TYPE_CHECKING:
    from weft.client.lanes.manager import LaneManager


class Invitations:
    """Invitations of the gateway for publishers to call this client."""

    def __init__(self, lanes: "LaneManager") -> None:
        self._lanes = lanes
        self._loop = asyncio.get_running_loop()
        self.listener = LaneListener(self._welcome)
        self._tasks: set[asyncio.Task[None]] = set()
        # Number of lost gateways: invitations of an earlier one are invalid.
        self._losses = 0
        # Handshakes for further subjects on existing lanes.
        self._answering: dict[tuple[Lane, bytes], ReceiverHandshake] = {}

    def invited(self, facts: Message) -> None:
        """Handle the gateway's invitation of a publisher."""
        now = self._loop.time()
        subject = facts.subject.encode()
        invitation = Invitation(
            subject,
            facts.get_blob("ticket"),
            facts.get_blob("key"),
            Other(facts.get_int64("sender"), facts.get_string("name")),
            facts.get_bool("encrypt"),
            now + facts.get_double("ttl_s"),
            f"{facts.get('inbox', '')}.".encode(),
            bool(facts.get("answers", False)),
        )
        if not self._lanes.serves(subject):
            self._no(invitation, "it does not serve the subject")
        elif invitation.is_sealed and not can_seal():
            self._no(invitation, "it cannot encrypt: cryptography is not installed there")
        else:
            task = self._loop.create_task(self._ready(invitation))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def hello(self, lane: Lane, facts: Message) -> None:
        """Handle a ticket for a further subject on a lane."""
        subject = facts.subject.encode()
        answering = self.listener.answering()
        try:
            answer = self._checked(lane, answering, facts)
        except WeftError as error:
            self.listener.refused += 1
            answer = lane_frame("refused", subject, reason=str(error))
        else:
            lane.show(subject)
            self._answering[(lane, subject)] = answering
        lane.tell(answer)

    def proven(self, lane: Lane, facts: Message) -> None:
        """Handle the publisher's proof for a further subject."""
        answering = self._answering.pop((lane, facts.subject.encode()), None)
        if answering is None:
            raise NotAllowed(f"{lane.other.name} sent a proof without a ticket")
        lane.serve(answering.proven(facts))

    def lane_lost(self, lane: Lane) -> None:
        """Handle the end of a lane."""
        for key in [key for key in self._answering if key[0] is lane]:
            del self._answering[key]

    def lost(self) -> None:
        """Handle the loss of the gateway, whose invitations are now invalid."""
        self._losses += 1
        self._answering.clear()
        self.listener.forget()

    def close(self) -> None:
        """Stop listening and revoke all invitations."""
        self.lost()
        for task in self._tasks:
            task.cancel()
        self.listener.close()

    async def _ready(self, invitation: Invitation) -> None:
        losses = self._losses
        try:
            await self.listener.open(self._lanes.gate.local_host())
        except OSError as error:
            self._no(invitation, f"it cannot listen: {error.strerror}")
            return
        if losses != self._losses:
            return
        self.listener.invite(invitation)
        self._lanes.gate.tell_gateway(
            lane_frame(
                "ready",
                invitation.subject,
                ticket=invitation.ticket,
                port=self.listener.port,
                unix=self.listener.unix,
            )
        )

    def _no(self, invitation: Invitation, reason: str) -> None:
        word = lane_frame("no", invitation.subject, ticket=invitation.ticket, reason=reason)
        self._lanes.gate.tell_gateway(word)

    def _checked(self, lane: Lane, answering: ReceiverHandshake, facts: Message) -> bytes:
        if not self._lanes.hears(facts.subject.encode()):
            raise NotAllowed(f"{facts.subject} is not served here")
        answer = answering.hello(facts)
        if answering.invitation is None or not lane.is_for(answering.invitation):
            raise NotAllowed("the ticket is for another lane")
        return answer

    def _welcome(
        self, wire: LaneTransport, invitation: Invitation, answering: ReceiverHandshake
    ) -> None:
        """Open a lane over a new transport whose ticket was proven."""
        if not self._lanes.hears(invitation.subject):
            raise NotAllowed(f"{invitation.subject.decode()} is not served here")
        proofs = answering.proofs
        keys = proofs.keys()[::-1] if proofs is not None and invitation.is_sealed else None
        lane = self._lanes.begin(wire, invitation, keys)
        lane.serve(invitation)
        # The publisher waits for this acknowledgement: only now are its messages received.
        lane.tell_taken()
