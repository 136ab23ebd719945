"""Proof of knowledge of a channel password that does not reveal it.

The client derives keys from the password; gateways store a verifier, which checks proofs but cannot
create them. docs/channels.md defines the bytes.
"""

import hashlib
import hmac
import unicodedata
from typing import NamedTuple

CHALLENGE_BYTES = 32
NONCE_MIN_BYTES = 16
NONCE_MAX_BYTES = 64
KEY_BYTES = 32

_SALT = b"weft channel salt 1\0"
_PROOF = b"weft channel proof 1\0"


class Verifier(NamedTuple):
    """Stored by a gateway to check proofs; cannot create them."""

    stored: bytes
    server: bytes


class Secret(NamedTuple):
    """Keys derived from the password, needed to create proofs."""

    client: bytes
    server: bytes

    def __repr__(self) -> str:
        # In a log it would let a reader join the channel.
        return "Secret(…)"

    @property
    def verifier(self) -> Verifier:
        """The verifier that a gateway stores."""
        return Verifier(hashlib.sha256(self.client).digest(), self.server)


class ProofInput(NamedTuple):
    """Input of a proof: one channel, and a one-time number of each side."""

    service: str
    name: bytes
    challenge: bytes
    nonce: bytes

    @property
    def said(self) -> bytes:
        """The bytes that both sides authenticate."""
        names = self.service.encode() + b"\0" + self.name + b"\0"
        return _PROOF + names + self.challenge + self.nonce


# Verifier of channels that do not exist or have no password: no proof matches it.
NOBODY = Verifier(bytes(KEY_BYTES), bytes(KEY_BYTES))


def secret_of(service: str, name: bytes, password: str) -> Secret:
    """Derive the keys of a password; takes about 50 ms and 16 MiB by design (scrypt)."""
    salt = hashlib.sha256(_SALT + service.encode() + b"\0" + name).digest()
    plain = unicodedata.normalize("NFKC", password).encode()
    salted = hashlib.scrypt(plain, salt=salt, n=16384, r=8, p=1, dklen=KEY_BYTES)
    return Secret(_code(salted, b"client"), _code(salted, b"server"))


def prove(secret: Secret, claim: ProofInput) -> bytes:
    """Create the proof that its sender knows the password."""
    return _xor(secret.client, _code(secret.verifier.stored, claim.said))


def sign(server: bytes, claim: ProofInput) -> bytes:
    """Create the gateway's answer to a proof, which shows that it knows the verifier."""
    return _code(server, claim.said)


def is_proven(verifier: Verifier, claim: ProofInput, proof: bytes) -> bool:
    """Return whether a proof is valid; takes the same time if it is not."""
    if len(proof) != KEY_BYTES:
        return False
    client = _xor(proof, _code(verifier.stored, claim.said))
    return hmac.compare_digest(hashlib.sha256(client).digest(), verifier.stored)


def _code(key: bytes, said: bytes) -> bytes:
    return hmac.digest(key, said, "sha256")


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
