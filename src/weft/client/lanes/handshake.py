"""How two clients show each other that the gateway wants a lane between them; no I/O.

The publisher calls, the receiver answers. docs/protocol.md has the words and the bytes.
"""

from collections.abc import Callable
from typing import NamedTuple

from weft.errors import NotAllowed
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import NONCE_BYTES, Proofs, is_proof, lane_number
from weft.wire.message.message import Message


class Other(NamedTuple):
    """Who is at the other end of a lane: number and name of a connection."""

    number: int
    name: str


class Invitation(NamedTuple):
    """What the gateway told about one ticket."""

    subject: bytes
    ticket: bytes
    key: bytes
    other: Other
    is_sealed: bool
    ends_at: float
    # Of whoever is invited to come: where it awaits answers, and if it may ask for any.
    inbox: bytes = b""
    may_ask: bool = False

    @property
    def lane(self) -> int:
        """What both ends call the lane that begins with this ticket."""
        return lane_number(self.ticket)

    def __repr__(self) -> str:
        # The key is for nobody else.
        return f"Invitation({self.subject!r}, {self.other})"


class Calling:
    """The publisher's side of one greeting."""

    def __init__(self, invitation: Invitation, nonce: bytes) -> None:
        self.invitation = invitation
        self._nonce = nonce
        self.proofs: Proofs | None = None

    def hello(self) -> bytes:
        """The first word."""
        invitation = self.invitation
        return lane_frame("hello", invitation.subject, ticket=invitation.ticket, nonce=self._nonce)

    def served(self, facts: Message) -> bytes:
        """What proves this side, now that the other is proven.

        Raises:
            NotAllowed: it is not: whoever answers there was not told by the gateway.
        """
        proofs = Proofs(
            self.invitation.key, self.invitation.ticket, self._nonce, facts.get_blob("nonce")
        )
        if not is_proof(facts.get_blob("proof"), proofs.by_receiver()):
            raise NotAllowed("whoever answers at its address cannot prove the ticket")
        self.proofs = proofs
        return lane_frame("prove", self.invitation.subject, proof=proofs.by_sender())


class Answering:
    """The receiver's side of one greeting; `find` gives the invitation for a ticket, once."""

    def __init__(self, find: Callable[[bytes], Invitation | None], nonce: bytes) -> None:
        self._find = find
        self._nonce = nonce
        self.invitation: Invitation | None = None
        self.proofs: Proofs | None = None

    def hello(self, facts: Message) -> bytes:
        """What proves this side to whoever shows a ticket.

        Raises:
            NotAllowed: the ticket is unknown, used, too old, or for another subject.
        """
        ticket = facts.get_blob("ticket")
        nonce = facts.get_blob("nonce")
        invitation = None if len(nonce) != NONCE_BYTES else self._find(ticket)
        if invitation is None or invitation.subject != facts.subject.encode():
            raise NotAllowed("the ticket is unknown, was used, is too old or for another subject")
        self.invitation = invitation
        self.proofs = Proofs(invitation.key, ticket, nonce, self._nonce)
        proof = self.proofs.by_receiver()
        return lane_frame("serve", invitation.subject, nonce=self._nonce, proof=proof)

    def proven(self, facts: Message) -> Invitation:
        """The invitation that whoever called has now proven to be for it.

        Raises:
            NotAllowed: it has not.
        """
        if self.invitation is None or self.proofs is None:
            raise NotAllowed("a proof without a ticket")
        if not is_proof(facts.get_blob("proof"), self.proofs.by_sender()):
            raise NotAllowed("the proof is not the ticket's")
        return self.invitation
