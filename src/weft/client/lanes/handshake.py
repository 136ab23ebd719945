"""Handshake of a lane, in which both ends prove that they have the gateway's ticket; no I/O.

The publisher calls, the receiver answers. docs/protocol.md specifies the messages.
"""

from collections.abc import Callable
from typing import NamedTuple

from weft.errors import NotAllowed
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import NONCE_BYTES, Proofs, is_proof, lane_number
from weft.wire.message.message import Message


class Other(NamedTuple):
    """Number and name of the connection at the other end of a lane."""

    number: int
    name: str


class Invitation(NamedTuple):
    """Ticket from the gateway, with the parameters of the lane."""

    subject: bytes
    ticket: bytes
    key: bytes
    other: Other
    is_sealed: bool
    ends_at: float
    # Of a publisher that is invited: its inbox, and whether it may send requests.
    inbox: bytes = b""
    may_ask: bool = False

    @property
    def lane(self) -> int:
        """The number of the lane that begins with this ticket, the same at both ends."""
        return lane_number(self.ticket)

    def __repr__(self) -> str:
        # Without the key, which must not be logged.
        return f"Invitation({self.subject!r}, {self.other})"


class CallerHandshake:
    """Publisher's side of a handshake."""

    def __init__(self, invitation: Invitation, nonce: bytes) -> None:
        self.invitation = invitation
        self._nonce = nonce
        self.proofs: Proofs | None = None

    def hello(self) -> bytes:
        """Return the first message."""
        invitation = self.invitation
        return lane_frame("hello", invitation.subject, ticket=invitation.ticket, nonce=self._nonce)

    def served(self, facts: Message) -> bytes:
        """Verify the proof of the receiver; return the proof of this end.

        Raises:
            NotAllowed: The other end does not have the ticket's key.
        """
        proofs = Proofs(
            self.invitation.key, self.invitation.ticket, self._nonce, facts.get_blob("nonce")
        )
        if not is_proof(facts.get_blob("proof"), proofs.by_receiver()):
            raise NotAllowed("the lane's other end cannot prove that it has the ticket's key")
        self.proofs = proofs
        return lane_frame("prove", self.invitation.subject, proof=proofs.by_sender())


class ReceiverHandshake:
    """Receiver's side of a handshake; `find` returns the invitation of a ticket, once."""

    def __init__(self, find: Callable[[bytes], Invitation | None], nonce: bytes) -> None:
        self._find = find
        self._nonce = nonce
        self.invitation: Invitation | None = None
        self.proofs: Proofs | None = None

    def hello(self, facts: Message) -> bytes:
        """Look up the ticket; return the proof of this end.

        Raises:
            NotAllowed: The ticket is unknown, used, expired, or for another subject.
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
        """Verify the proof of the publisher; return its invitation.

        Raises:
            NotAllowed: Invalid proof.
        """
        if self.invitation is None or self.proofs is None:
            raise NotAllowed("a proof without a ticket")
        if not is_proof(facts.get_blob("proof"), self.proofs.by_sender()):
            raise NotAllowed("the proof does not match the ticket")
        return self.invitation
