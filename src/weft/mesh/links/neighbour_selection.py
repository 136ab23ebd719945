"""Selection of neighbours: which gateways to link with, and which links to close.

A gateway links with all others up to its limit. In larger meshes it links with its neighbours on a
consistent-hash ring of all ids, which keeps the mesh connected, and with others chosen by hash,
which keeps paths short.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from hashlib import blake2b
from itertools import islice

# Links left free for gateways that dial this one.
SPARE = 2


def ring_neighbours(own: bytes, ring: Sequence[bytes]) -> list[bytes]:
    """Return the ids before and after `own` on a ring, in order; they may be the same one."""
    if not ring:
        return []
    at = bisect_left(ring, own)
    after = at + 1 if at < len(ring) and ring[at] == own else at
    found = dict.fromkeys((ring[at - 1], ring[after % len(ring)]))
    return [node for node in found if node != own]


def are_neighbours(one: bytes, other: bytes, ring: Sequence[bytes]) -> bool:
    """Return whether two ids are adjacent on a ring, or would be if both were on it."""
    # Only an id between them and their ring neighbours can separate them.
    return other in ring_neighbours(one, sorted({*ring_neighbours(one, ring), other}))


def rank(one: bytes, other: bytes) -> bytes:
    """Return the rank of a chosen link, the lowest first; the same for both ends."""
    return blake2b(min(one, other) + max(one, other), digest_size=8).digest()


def wanted(
    ranked: Sequence[bytes], ring: Collection[bytes], linked: Collection[bytes], max_links: int
) -> list[bytes]:
    """Return the gateways to link with, the most urgent first.

    `ranked` are all others by rank, `ring` the ring neighbours among them.
    """
    if len(ranked) <= max_links:
        return [node for node in ranked if node not in linked]
    first = [node for node in ring if node not in linked]
    free = max_links - SPARE - len(linked) - len(first)
    chords = (node for node in ranked if node not in linked and node not in ring)
    # Twice the free number, because some gateways will be full themselves.
    return first + list(islice(chords, max(0, 2 * free)))


def spare_links(
    own: bytes, ring: Sequence[bytes], linked: Collection[bytes], max_links: int
) -> list[bytes]:
    """Return the links to close above the limit, the first to close first."""
    if len(linked) <= max_links:
        return []
    near = ring_neighbours(own, ring)
    chords = [node for node in linked if node not in near]
    return sorted(chords, key=lambda node: rank(own, node), reverse=True)
