"""Identity of a gateway or an administrator: ownership of a key pair."""

from typing import Protocol

SEED_BYTES = 32
KEY_BYTES = 32


class SigningIdentity(Protocol):
    """Key pair that can sign."""

    @property
    def key(self) -> bytes:
        """The public key, 32 bytes."""

    def sign(self, data: bytes) -> bytes:
        """Return the signature of `data`, at most 128 bytes."""
