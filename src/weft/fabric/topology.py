"""How the links of the mesh lie, by what all gateways say of theirs."""

from collections.abc import Collection, Iterable, Mapping

Edge = tuple[int, int]

# A link that is gone may have carried messages that are still on their way.
LATELY_NS = 10_000_000_000


def edge(one: int, other: int) -> Edge:
    """A link, whichever end it is seen from."""
    return (one, other) if one < other else (other, one)


def ways(
    own: int,
    near: Iterable[int],
    links: Mapping[int, frozenset[int]],
    ends: Collection[int] = (),
) -> dict[int, int]:
    """Through whom everyone that can be reached is, on a shortest way.

    `near` are those at the other end of a link of this gateway, `links` what the others say. A link
    further away counts if both its ends say that it is there. No way leads through `ends`. Of
    several ways the same one is taken each time, but gateways differ in which, so that not all lead
    through the same few.
    """
    parents: dict[int, int] = {}
    frontier = sorted(near, key=own.__xor__)
    for number in frontier:
        parents[number] = own
    while frontier:
        following: list[int] = []
        for number in frontier:
            if number in ends:
                continue
            for other in sorted(links.get(number, ()), key=own.__xor__):
                if other == own or other in parents or number not in links.get(other, ()):
                    continue
                parents[other] = number
                following.append(other)
        frontier = following
    return parents


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
        self._now: set[Edge] = set()
        self._until_ns: dict[Edge, int] = {}

    def __contains__(self, pair: object) -> bool:
        return pair in self._now or pair in self._until_ns

    def __len__(self) -> int:
        return len(self._now)

    def update(self, links: Mapping[int, frozenset[int]], now_ns: int) -> None:
        """The links are these now."""
        said = {
            edge(number, other)
            for number, others in links.items()
            for other in others
            if number == self._own or number in links.get(other, ())
        }
        for gone in self._now - said:
            self._until_ns[gone] = now_ns + LATELY_NS
        self._now = said

    def expire(self, now_ns: int) -> bool:
        """Forget what was long ago; whether anything was."""
        old = [pair for pair, until_ns in self._until_ns.items() if until_ns <= now_ns]
        for pair in old:
            del self._until_ns[pair]
        return bool(old)
