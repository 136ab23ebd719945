"""Lane tickets: signed by a gateway, verified by both ends of the lane.

The signature of a ticket is a shared key. The gateway sends it to both ends, which prove to each
other that they know it; it is never sent on the lane.
"""

import hashlib
import hmac
import struct
from typing import NamedTuple

KEY_BYTES = 32
NONCE_BYTES = 32
PROOF_BYTES = 32
# Lifetime of a ticket.
TICKET_S = 10.0

_TICKET = b"weft lane ticket 1\0"
_BY_SENDER = b"weft lane 1: sender\0"
_BY_RECEIVER = b"weft lane 1: receiver\0"
_FROM_SENDER = b"weft lane 1: from sender\0"
_FROM_RECEIVER = b"weft lane 1: from receiver\0"


class Ticket(NamedTuple):
    """Permission to send a subject over a lane until `ends_ns`; `number` makes it unique."""

    service: str
    sender: int
    receiver: int
    subject: bytes
    ends_ns: int
    number: int

    def encode(self) -> bytes:
        """The bytes that are signed and sent."""
        service = self.service.encode()
        numbers = struct.pack("<QQqQ", self.sender, self.receiver, self.ends_ns, self.number)
        return numbers + bytes([len(service)]) + service + self.subject


def sign(secret: bytes, ticket: bytes) -> bytes:
    """Sign a ticket; the signature is the shared key of both ends."""
    return hmac.digest(secret, _TICKET + ticket, "sha256")


def lane_number(ticket: bytes) -> int:
    """The number that both ends use for the lane opened with a ticket."""
    return int.from_bytes(hashlib.sha256(ticket).digest()[:4], "little")


class Proofs(NamedTuple):
    """Proofs and session keys of one lane, derived from its key and a nonce of each end."""

    key: bytes
    ticket: bytes
    sender_nonce: bytes
    receiver_nonce: bytes

    def __repr__(self) -> str:
        # In a log it would let a reader impersonate either end.
        return "Proofs(…)"

    def by_sender(self) -> bytes:
        """The proof that the sender knows the key."""
        return self._code(_BY_SENDER)

    def by_receiver(self) -> bytes:
        """The proof that the receiver knows the key."""
        return self._code(_BY_RECEIVER)

    def keys(self) -> tuple[bytes, bytes]:
        """The encryption keys: of the sender, and of the receiver."""
        return self._code(_FROM_SENDER), self._code(_FROM_RECEIVER)

    def _code(self, label: bytes) -> bytes:
        about = hashlib.sha256(self.ticket).digest() + self.sender_nonce + self.receiver_nonce
        return hmac.digest(self.key, label + about, "sha256")


def is_proof(given: bytes, expected: bytes) -> bool:
    """Compare a proof in constant time."""
    return hmac.compare_digest(given, expected)
