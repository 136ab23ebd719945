"""Identities by Ed25519: a seed that nobody else knows, what it signs, and how that is checked."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


class Signer:
    """An identity that is made from a seed.

    Raises:
        ValueError: the seed has another size than 32 bytes.
    """

    def __init__(self, seed: bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.key = self._private.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """The signature of some bytes."""
        return self._private.sign(data)


def verify(key: bytes, signature: bytes, data: bytes) -> bool:
    """Say if a signature is that of the owner of a key, who need not have a proper one."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True
