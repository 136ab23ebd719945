"""Ed25519 identities from a seed, and verification of their signatures."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


class Signer:
    """Identity from a secret seed.

    Raises:
        ValueError: the seed is not 32 bytes long.
    """

    def __init__(self, seed: bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.key = self._private.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """Return the signature of `data`."""
        return self._private.sign(data)


def verify(key: bytes, signature: bytes, data: bytes) -> bool:
    """Return whether a signature is valid; an invalid key has no valid signature."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True
