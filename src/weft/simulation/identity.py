"""Simulated identities: a keyed hash instead of a signature, to save time.

They are not secure: any holder of a public key could forge signatures.
"""

from hashlib import blake2b

from weft.mesh.links.handshake import Admission

_SECRET = b"everyone in a simulation knows it"


class SimulatedIdentity:
    """Identity of one gateway."""

    def __init__(self, name: str) -> None:
        self.key = blake2b(name.encode(), digest_size=32).digest()

    def sign(self, data: bytes) -> bytes:
        """Return the simulated signature."""
        return blake2b(data, digest_size=16, key=self.key).digest()


def verify(key: bytes, signature: bytes, data: bytes) -> bool:
    """Return whether a signature is valid."""
    return blake2b(data, digest_size=16, key=key).digest() == signature


def admission(name: str) -> Admission:
    """Return the credentials of a simulated gateway."""
    return Admission(SimulatedIdentity(name), verify, _SECRET, None)
