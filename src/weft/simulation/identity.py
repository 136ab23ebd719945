"""Who a simulated gateway is: a keyed hash instead of a signature, which would take all the time.

Nobody in a simulation wants to forge anything: whoever knows a key could.
"""

from hashlib import blake2b

from weft.mesh.links.handshake import Admission

_SECRET = b"everyone in a simulation knows it"


class SimulatedIdentity:
    """The identity of one gateway."""

    def __init__(self, name: str) -> None:
        self.key = blake2b(name.encode(), digest_size=32).digest()

    def sign(self, data: bytes) -> bytes:
        """The signature of some bytes."""
        return blake2b(data, digest_size=16, key=self.key).digest()


def verify(key: bytes, signature: bytes, data: bytes) -> bool:
    """Say if a signature is that of the owner of a key."""
    return blake2b(data, digest_size=16, key=key).digest() == signature


def admission(name: str) -> Admission:
    """What lets the gateway of a name into the mesh of a simulation."""
    return Admission(SimulatedIdentity(name), verify, _SECRET, None)
