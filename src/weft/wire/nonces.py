"""Unguessable names, cut from random bytes that are read in batches."""

from collections.abc import Callable

# 64 bits in hexadecimal digits.
NONCE_DIGITS = 16

# Names per read of the random source: a system call for each would cost more than the name.
_DRAWN = 256


class Nonces:
    """Unpredictable names of 64 bits each, as 16 hexadecimal digits.

    Args:
        source: returns N bytes of a cryptographic source such as `os.urandom`.
    """

    def __init__(self, source: Callable[[int], bytes]) -> None:
        self._source = source
        self._names: list[bytes] = []

    def take(self) -> bytes:
        """Return a name that was never returned before."""
        if not self._names:
            digits = self._source(_DRAWN * NONCE_DIGITS // 2).hex("-", NONCE_DIGITS // 2)
            self._names = digits.encode().split(b"-")
        return self._names.pop()
