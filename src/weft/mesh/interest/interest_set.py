"""Interest set of one gateway, updated by deltas and compared by digest.

The digest is the XOR of the digests of all entries, so that a delta updates it in proportion to its
size.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from weft.mesh.protocol import InterestEntry, wanted_bytes

# Bounds on the interest set of one gateway.
WANTED_MAX = 100_000
WANTED_MAX_BYTES = 8 << 20


class InterestChange(NamedTuple):
    """Added and removed entries."""

    added: tuple[InterestEntry, ...]
    removed: tuple[InterestEntry, ...]


NO_CHANGE = InterestChange((), ())


class WantedSet:
    """Interest set of one gateway at a `version` that this gateway numbers."""

    def __init__(self) -> None:
        self.version = 0
        self.digest = 0
        self.bytes = 0
        self._all: set[InterestEntry] = set()

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, wanted: InterestEntry) -> bool:
        return wanted in self._all

    def sorted(self) -> list[InterestEntry]:
        """Return all entries in a fixed order."""
        return sorted(self._all)

    def apply(
        self, added: Iterable[InterestEntry], removed: Iterable[InterestEntry]
    ) -> InterestChange:
        """Apply a delta; return its effective part."""
        gone = []
        for each in removed:
            if each in self._all:
                self._all.discard(each)
                self._count(each, -1)
                gone.append(each)
        come = []
        for each in added:
            if each not in self._all:
                self._all.add(each)
                self._count(each, 1)
                come.append(each)
        return InterestChange(tuple(come), tuple(gone))

    def digest_after(self, added: Iterable[InterestEntry], removed: Iterable[InterestEntry]) -> int:
        """Return the digest after a delta, without applying it."""
        come = set(added)
        digest = self.digest
        for each in come - self._all | self._all.intersection(removed) - come:
            digest ^= _mixed(each)
        return digest

    def become(self, wanted: Iterable[InterestEntry]) -> InterestChange:
        """Replace the set; return the delta."""
        others = set(wanted)
        return self.apply(others - self._all, self._all - others)

    def _count(self, wanted: InterestEntry, sign: int) -> None:
        self.digest ^= _mixed(wanted)
        self.bytes += sign * wanted_bytes(wanted)


def digest_of(wanted: Iterable[InterestEntry]) -> int:
    """Return the digest of a set with these entries."""
    digest = 0
    for each in set(wanted):
        digest ^= _mixed(each)
    return digest


def is_too_much(count: int, size: int) -> bool:
    """Return whether an interest set is over its bounds."""
    return count > WANTED_MAX or size > WANTED_MAX_BYTES


def _mixed(wanted: InterestEntry) -> int:
    said = b"%c%b\0%b" % (wanted.is_listener, wanted.pattern, wanted.group)
    return int.from_bytes(blake2b(said, digest_size=8).digest(), "little")
