"""How the links of the mesh lie, by what all gateways say of theirs."""

from collections.abc import Collection, Iterable, Mapping

Edge = tuple[int, int]

# A link that is gone may have carried messages that are still on their way.
LATELY_NS = 10_000_000_000

_NONE: frozenset[int] = frozenset()


def edge(one: int, other: int) -> Edge:
    """A link, whichever end it is seen from."""
    return (one, other) if one < other else (other, one)


def hops(parents: Mapping[int, int], own: int, number: int) -> int:
    """How many links lie on the way to a gateway; 0 if there is none."""
    count = 0
    while number != own:
        if number not in parents or count > len(parents):
            return 0
        number = parents[number]
        count += 1
    return count


class Edges:
    """Every link that both of its ends say is there, or said so lately; of its own, one gateway.

    Otherwise anybody could claim to be linked with anybody, and say what it likes in its name.
    """

    def __init__(self, own: int) -> None:
        self._own = own
        # Grows when the links are others than they were.
        self.version = 0
        # What each gateway says; the links that follow are counted, and not kept apart.
        self._said: dict[int, frozenset[int]] = {}
        self._count = 0
        # With whom each is linked but this gateway: those first that it goes through if it can.
        self._ordered: dict[int, list[int]] = {}
        self._until_ns: dict[Edge, int] = {}

    def __contains__(self, pair: object) -> bool:
        return pair in self._until_ns or (isinstance(pair, tuple) and self._is_linked(*pair))

    def __len__(self) -> int:
        return self._count

    def update(self, links: Mapping[int, frozenset[int]], now_ns: int) -> None:
        """The links are these now; what is said by the same sets as before was looked at then."""
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
        """Forget what was long ago; whether anything was."""
        old = [pair for pair, until_ns in self._until_ns.items() if until_ns <= now_ns]
        for pair in old:
            del self._until_ns[pair]
        return bool(old)

    def ways(self, near: Iterable[int], ends: Collection[int] = ()) -> dict[int, int]:
        """Through whom everyone that can be reached is, on a shortest way.

        `near` are those at the other end of a link of this gateway. No way leads through `ends`. Of
        several ways the same one is taken each time, but gateways differ in which, so that not all
        lead through the same few.
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
        """Say if two are linked, as both say, or as this gateway does if it is one of them."""
        said, own = self._said, self._own
        return (other == own or other in said.get(one, _NONE)) and (
            one == own or one in said.get(other, _NONE)
        )

    def _look(self, one: int, other: int, *, was_linked: bool, now_ns: int) -> None:
        """See what it comes to that one of two says something else than before."""
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
