"""Who a gateway, or an administrator, is to others: the owner of a public key."""

from typing import Protocol

SEED_BYTES = 32
KEY_BYTES = 32


class Identity(Protocol):
    """Whoever can prove to be the owner of a public key."""

    @property
    def key(self) -> bytes:
        """The public key, 32 bytes."""

    def sign(self, data: bytes) -> bytes:
        """The signature of some bytes, 128 at most."""
