"""With whom a gateway should be linked, and whom it lets go.

With everyone, as long as there are no more than it may have links. Otherwise with its neighbours on
a ring of all gateways by their ids, which keeps the mesh in one piece, and with some others that a
hash picks, which keep ways short.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from hashlib import blake2b
from itertools import islice

# Places that a gateway does not fill by itself, for those who come to it.
SPARE = 2


def ring_neighbours(own: bytes, ring: Sequence[bytes]) -> list[bytes]:
    """Those before and after a gateway on a ring of ids, in order; it may be one of them."""
    if not ring:
        return []
    at = bisect_left(ring, own)
    after = at + 1 if at < len(ring) and ring[at] == own else at
    found = dict.fromkeys((ring[at - 1], ring[after % len(ring)]))
    return [node for node in found if node != own]


def are_neighbours(one: bytes, other: bytes, ring: Sequence[bytes]) -> bool:
    """Say if two are next to each other on a ring of ids, or would be if both were on it."""
    # Only whoever is nearer than those before and after comes between.
    return other in ring_neighbours(one, sorted({*ring_neighbours(one, ring), other}))


def rank(one: bytes, other: bytes) -> bytes:
    """How far two gateways are from being linked by choice: the same for both."""
    return blake2b(min(one, other) + max(one, other), digest_size=8).digest()


def wanted(
    ranked: Sequence[bytes], ring: Collection[bytes], linked: Collection[bytes], max_links: int
) -> list[bytes]:
    """Whom a gateway should link with and is not, the most urgent first.

    `ranked` are all others by their rank, `ring` those of them that are its neighbours.
    """
    if len(ranked) <= max_links:
        return [node for node in ranked if node not in linked]
    first = [node for node in ring if node not in linked]
    free = max_links - SPARE - len(linked) - len(first)
    chords = (node for node in ranked if node not in linked and node not in ring)
    # More than are free: some will have no room themselves.
    return first + list(islice(chords, max(0, 2 * free)))


def spare_links(
    own: bytes, ring: Sequence[bytes], linked: Collection[bytes], max_links: int
) -> list[bytes]:
    """Which links a gateway that has too many can do without, the first to go first."""
    if len(linked) <= max_links:
        return []
    near = ring_neighbours(own, ring)
    chords = [node for node in linked if node not in near]
    return sorted(chords, key=lambda node: rank(own, node), reverse=True)
