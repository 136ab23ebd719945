"""By which links frames leave, and in which envelopes: worked out once, then only numbered."""

from weft.broker.delivery.outbox import Outbox
from weft.mesh.delivery.remote_gateway import Distant
from weft.mesh.routing.forward_header import COUNT_AT, ENTRY_BYTES, Entry, entries_at, make
from weft.wire.byteops import put_u32, put_u64, u64_at

_COUNT = COUNT_AT
_ENTRY = ENTRY_BYTES


class Branch:
    """What goes by one link; None is no link: it goes nowhere now, but is counted and kept."""

    def __init__(self, link: Outbox | None, header: bytearray, slots: list[Distant | None]) -> None:
        self.link = link
        self.header = header
        self.slots = slots
        self._entries = entries_at(header)

    def count(self, frames: int) -> None:
        """Number so many frames for everyone that the branch is for."""
        put_u32(self.header, _COUNT, frames)
        at = self._entries + 8
        for slot in self.slots:
            distant = slot
            if distant is not None:
                put_u64(self.header, at, distant.next)
                self.header[at - 2] = distant.mark & 255
                self.header[at - 1] = distant.mark >> 8
                distant.next += frames
            at += _ENTRY


class Part:
    """What of an envelope on its way goes on by one link."""

    def __init__(self, link: Outbox, header: bytearray) -> None:
        self.link = link
        self.header = header
        self._entries = entries_at(header)

    def count(self, frames: int) -> None:
        """It is in front of so many frames this time."""
        put_u32(self.header, _COUNT, frames)

    def go_on(self, frames: int) -> None:
        """So many frames have gone on: those that come next have higher numbers."""
        end = len(self.header)
        at = self._entries + 8
        while at < end:
            put_u64(self.header, at, u64_at(self.header, at) + frames)
            at += _ENTRY


class Plan:
    """How everything for the same gateways leaves, as long as the mesh is as it is."""

    def __init__(self, version: int, branches: list[Branch]) -> None:
        self.version = version
        self.branches = branches


class Ways:
    """The tree of ways from this gateway: who is reached through whom, and by which link."""

    def __init__(self, own: int, parents: dict[int, int], links: dict[int, Outbox]) -> None:
        self.own = own
        self._parents = parents
        self.links = links

    def __contains__(self, number: int) -> bool:
        return number in self._parents

    def to(self, number: int) -> list[int]:
        """Those on the way to a gateway, itself the last; none if there is no way."""
        way: list[int] = []
        while number != self.own:
            way.append(number)
            if number not in self._parents or len(way) > len(self._parents):
                return []
            number = self._parents[number]
        way.reverse()
        return way if way and way[0] in self.links else []

    def branches(self, flags: int, group: bytes, distants: list[Distant]) -> list[Branch]:
        """What goes by which link so that everyone gets it, and nothing goes by a link twice."""
        wanted = {distant.number: distant for distant in distants}
        below: dict[int, dict[int, None]] = {}
        lost: list[Distant] = []
        for distant in distants:
            way = self.to(distant.number)
            if not way:
                lost.append(distant)
            before = self.own
            for number in way:
                below.setdefault(before, {})[number] = None
                before = number
        branches: list[Branch] = []
        for first in below.get(self.own, {}):
            entries: list[Entry] = []
            _plant(first, below, wanted, entries)
            slots = [wanted.get(entry.number) for entry in entries]
            branches.append(
                Branch(self.links[first], make(flags, group, [self.own], entries), slots)
            )
        if lost:
            entries = [Entry(distant.number, 0, True) for distant in lost]
            branches.append(Branch(None, make(flags, group, [self.own], entries), list(lost)))
        return branches


def _plant(
    number: int,
    below: dict[int, dict[int, None]],
    wanted: dict[int, Distant],
    entries: list[Entry],
) -> None:
    """Write a gateway and everything behind it, in pre-order."""
    # Not by recursion: a way may be longer than calls can be deep.
    stack = [(number, -1)]
    while stack:
        number, at = stack.pop()
        if at >= 0:
            entries[at] = entries[at]._replace(below=len(entries) - at - 1)
            continue
        stack.append((number, len(entries)))
        entries.append(Entry(number, 0, number in wanted))
        stack.extend((child, -1) for child in reversed(below.get(number, {})))
