"""Tickets for lanes: what a gateway signs, and how both ends show that it did.

The signature of a ticket is its key. Both ends are told it by the gateway, and prove to each other
that they know it; it is never said on the lane.
"""

import hashlib
import hmac
import struct
from typing import NamedTuple

KEY_BYTES = 32
NONCE_BYTES = 32
PROOF_BYTES = 32
# How long a ticket is good for.
TICKET_S = 10.0

_TICKET = b"weft lane ticket 1\0"
_BY_SENDER = b"weft lane 1: sender\0"
_BY_RECEIVER = b"weft lane 1: receiver\0"
_FROM_SENDER = b"weft lane 1: from sender\0"
_FROM_RECEIVER = b"weft lane 1: from receiver\0"


class Ticket(NamedTuple):
    """Who may send what to whom by a lane, until when; the number makes each another one."""

    service: str
    sender: int
    receiver: int
    subject: bytes
    ends_ns: int
    number: int

    def encode(self) -> bytes:
        """The bytes that are signed and shown."""
        service = self.service.encode()
        numbers = struct.pack("<QQqQ", self.sender, self.receiver, self.ends_ns, self.number)
        return numbers + bytes([len(service)]) + service + self.subject


def sign(secret: bytes, ticket: bytes) -> bytes:
    """The key of a ticket: the signature that only the gateway could make."""
    return hmac.digest(secret, _TICKET + ticket, "sha256")


def lane_number(ticket: bytes) -> int:
    """What both ends call the lane that began with a ticket, whatever else goes by it later."""
    return int.from_bytes(hashlib.sha256(ticket).digest()[:4], "little")


class Proofs(NamedTuple):
    """What both ends of one lane make of a ticket's key and of a number from each of them."""

    key: bytes
    ticket: bytes
    sender_nonce: bytes
    receiver_nonce: bytes

    def __repr__(self) -> str:
        # Whoever reads it in a log could take the place of either.
        return "Proofs(…)"

    def by_sender(self) -> bytes:
        """What shows that the sender knows the key."""
        return self._code(_BY_SENDER)

    def by_receiver(self) -> bytes:
        """What shows that the receiver knows the key."""
        return self._code(_BY_RECEIVER)

    def keys(self) -> tuple[bytes, bytes]:
        """What is said is encrypted with: from the sender, and from the receiver."""
        return self._code(_FROM_SENDER), self._code(_FROM_RECEIVER)

    def _code(self, label: bytes) -> bytes:
        about = hashlib.sha256(self.ticket).digest() + self.sender_nonce + self.receiver_nonce
        return hmac.digest(self.key, label + about, "sha256")


def is_proof(given: bytes, expected: bytes) -> bool:
    """Say if a proof is the right one, without telling by the time it takes how much of it is."""
    return hmac.compare_digest(given, expected)
