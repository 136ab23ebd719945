"""With whom a gateway should be linked, and whom it lets go.

With everyone, as long as there are no more than it may have links. Otherwise with its neighbours on
a ring of all gateways by their ids, which keeps the mesh in one piece, and with some others that a
hash picks, which keep ways short.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from hashlib import blake2b

# Places that a gateway does not fill by itself, for those who come to it.
SPARE = 2


def ring_neighbours(own: bytes, others: Collection[bytes]) -> set[bytes]:
    """Those before and after a gateway on the ring of ids."""
    ring = sorted(set(others) - {own})
    if not ring:
        return set()
    at = bisect_left(ring, own)
    return {ring[at - 1], ring[at % len(ring)]}


def rank(one: bytes, other: bytes) -> bytes:
    """How far two gateways are from being linked by choice: the same for both."""
    return blake2b(min(one, other) + max(one, other), digest_size=8).digest()


def wanted(
    own: bytes, others: Sequence[bytes], linked: Collection[bytes], max_links: int
) -> list[bytes]:
    """Whom a gateway should link with and is not, the most urgent first."""
    missing = [node for node in others if node not in linked]
    if len(others) <= max_links:
        return sorted(missing, key=lambda node: rank(own, node))
    ring = ring_neighbours(own, others)
    first = [node for node in missing if node in ring]
    free = max_links - SPARE - len(linked) - len(first)
    chords = sorted((node for node in missing if node not in ring), key=lambda n: rank(own, n))
    # More than are free: some will have no room themselves.
    return first + chords[: 2 * free if free > 0 else 0]


def spare_links(
    own: bytes, others: Collection[bytes], linked: Collection[bytes], max_links: int
) -> list[bytes]:
    """Which links a gateway that has too many can do without, the first to go first."""
    if len(linked) <= max_links:
        return []
    ring = ring_neighbours(own, others)
    chords = [node for node in linked if node not in ring]
    return sorted(chords, key=lambda node: rank(own, node), reverse=True)
