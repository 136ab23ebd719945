"""Topology of the mesh: the links that both of their ends advertise."""

from collections.abc import Collection, Iterable, Mapping

Edge = tuple[int, int]

# Time for which a closed link is accepted in paths: messages may still be on their way.
LATELY_NS = 10_000_000_000

_NONE: frozenset[int] = frozenset()


def edge(one: int, other: int) -> Edge:
    """Return a link as a pair, the lower number first."""
    return (one, other) if one < other else (other, one)


def hops(parents: Mapping[int, int], own: int, number: int) -> int:
    """Return the number of links on the path to a gateway; 0 without a path."""
    count = 0
    while number != own:
        if number not in parents or count > len(parents):
            return 0
        number = parents[number]
        count += 1
    return count


class Edges:
    """Links that both ends advertise now or recently; for own links one end suffices.

    Otherwise a gateway could claim links to others and forge messages in their name.
    """

    def __init__(self, own: int) -> None:
        self._own = own
        # Incremented when the links change.
        self.version = 0
        # Advertised links; the confirmed ones are only counted.
        self._said: dict[int, frozenset[int]] = {}
        self._count = 0
        # Neighbours of each other gateway in the order in which routes prefer them.
        self._ordered: dict[int, list[int]] = {}
        self._until_ns: dict[Edge, int] = {}

    def __contains__(self, pair: object) -> bool:
        return pair in self._until_ns or (isinstance(pair, tuple) and self._is_linked(*pair))

    def __len__(self) -> int:
        return self._count

    def update(self, links: Mapping[int, frozenset[int]], now_ns: int) -> None:
        """Update the links; sets that are the same objects as before are skipped."""
        said = self._said
        changed = [number for number, others in links.items() if said.get(number) is not others]
        if len(said) + sum(number not in said for number in changed) != len(links):
            changed += [number for number in said if number not in links]
        for number in changed:
            before, after = said.get(number, _NONE), links.get(number, _NONE)
            others = before ^ after
            linked = [other for other in others if self._is_linked(number, other)]
            said[number] = after
            for other in others:
                self._look(number, other, was_linked=other in linked, now_ns=now_ns)
            if number not in links:
                del said[number]

    def expire(self, now_ns: int) -> bool:
        """Forget links that were closed long ago; return whether there were any."""
        old = [pair for pair, until_ns in self._until_ns.items() if until_ns <= now_ns]
        for pair in old:
            del self._until_ns[pair]
        return bool(old)

    def ways(self, near: Iterable[int], ends: Collection[int] = ()) -> dict[int, int]:
        """Return the predecessor of each reachable gateway on a shortest path.

        `near` are the neighbours of this gateway. No path leads through `ends`. The choice among
        equal paths is stable, but differs between gateways, which spreads the load.
        """
        own = self._own
        frontier = sorted(near, key=own.__xor__)
        parents = dict.fromkeys(frontier, own)
        while frontier:
            following: list[int] = []
            for number in frontier:
                if number in ends:
                    continue
                for other in self._ordered.get(number) or self._order(number):
                    if other not in parents:
                        parents[other] = number
                        following.append(other)
            frontier = following
        return parents

    def _is_linked(self, one: int, other: int) -> bool:
        """Return whether a link is confirmed by both ends, or by this gateway for its own."""
        said, own = self._said, self._own
        return (other == own or other in said.get(one, _NONE)) and (
            one == own or one in said.get(other, _NONE)
        )

    def _look(self, one: int, other: int, *, was_linked: bool, now_ns: int) -> None:
        """Update a link after one of its ends advertised a change."""
        is_linked = self._is_linked(one, other)
        if is_linked == was_linked:
            return
        self.version += 1
        self._count += 1 if is_linked else -1
        if was_linked:
            self._until_ns[edge(one, other)] = now_ns + LATELY_NS
        self._ordered.pop(one, None)
        self._ordered.pop(other, None)

    def _order(self, number: int) -> list[int]:
        own = self._own
        linked = [
            other
            for other in self._said.get(number, _NONE)
            if other != own and number in self._said.get(other, _NONE)
        ]
        linked.sort(key=own.__xor__)
        self._ordered[number] = linked
        return linked
