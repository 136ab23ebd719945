"""How somebody shows to know the password of a channel without saying it.

The client makes keys of the password; gateways have what checks them, which is of no use for
proving anything. Both sides' bytes are in docs/channels.md.
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
    """What checks proofs: a gateway has it, and cannot prove anything by it."""

    stored: bytes
    server: bytes


class Secret(NamedTuple):
    """What proves that the password is known; only whoever was told the password has it."""

    client: bytes
    server: bytes

    def __repr__(self) -> str:
        # Whoever reads it in a log could join.
        return "Secret(…)"

    @property
    def verifier(self) -> Verifier:
        """What a gateway is given to check proofs."""
        return Verifier(hashlib.sha256(self.client).digest(), self.server)


class Claim(NamedTuple):
    """What a proof is about: one channel by its name, and numbers that are used once."""

    service: str
    name: bytes
    challenge: bytes
    nonce: bytes

    @property
    def said(self) -> bytes:
        """What both sides make their codes of."""
        names = self.service.encode() + b"\0" + self.name + b"\0"
        return _PROOF + names + self.challenge + self.nonce


# What is checked against where there is no channel, or none with a password: nobody can prove it.
NOBODY = Verifier(bytes(KEY_BYTES), bytes(KEY_BYTES))


def secret_of(service: str, name: bytes, password: str) -> Secret:
    """The keys of a password; it takes about 50 ms and 16 MiB, on purpose."""
    salt = hashlib.sha256(_SALT + service.encode() + b"\0" + name).digest()
    plain = unicodedata.normalize("NFKC", password).encode()
    salted = hashlib.scrypt(plain, salt=salt, n=16384, r=8, p=1, dklen=KEY_BYTES)
    return Secret(_code(salted, b"client"), _code(salted, b"server"))


def prove(secret: Secret, claim: Claim) -> bytes:
    """The proof that whoever makes it knows the password."""
    return _xor(secret.client, _code(secret.verifier.stored, claim.said))


def sign(server: bytes, claim: Claim) -> bytes:
    """What the other side answers a proof with: it knows the password's keys, too."""
    return _code(server, claim.said)


def is_proven(verifier: Verifier, claim: Claim, proof: bytes) -> bool:
    """Say if a proof is one; it takes the same time if it is not."""
    if len(proof) != KEY_BYTES:
        return False
    client = _xor(proof, _code(verifier.stored, claim.said))
    return hmac.compare_digest(hashlib.sha256(client).digest(), verifier.stored)


def _code(key: bytes, said: bytes) -> bytes:
    return hmac.digest(key, said, "sha256")


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
