"""Forwarding plans: links and headers for a set of destinations, computed once."""

from weft.broker.delivery.outbox import Outbox
from weft.mesh.delivery.remote_gateway import RemoteGateway
from weft.mesh.routing.forward_header import COUNT_AT, ENTRY_BYTES, PlannedGateway, entries_at, make
from weft.wire.byteops import put_u32, put_u64, u64_at

_COUNT = COUNT_AT
_ENTRY = ENTRY_BYTES


class Branch:
    """Frames for one link; without a link they are only numbered and kept for retransmission."""

    def __init__(
        self, link: Outbox | None, header: bytearray, slots: list[RemoteGateway | None]
    ) -> None:
        self.link = link
        self.header = header
        self.slots = slots
        self._entries = entries_at(header)

    def count(self, frames: int) -> None:
        """Number the next `frames` frames for all destinations of the branch."""
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


class OnwardBranch:
    """Branch of a received plan that is forwarded on one link."""

    def __init__(self, link: Outbox, header: bytearray) -> None:
        self.link = link
        self.header = header
        self._entries = entries_at(header)

    def count(self, frames: int) -> None:
        """Set the number of frames that follow the header this time."""
        put_u32(self.header, _COUNT, frames)

    def go_on(self, frames: int) -> None:
        """Advance the numbers in the header past forwarded frames."""
        end = len(self.header)
        at = self._entries + 8
        while at < end:
            put_u64(self.header, at, u64_at(self.header, at) + frames)
            at += _ENTRY


class ForwardingPlan:
    """Forwarding plan for a set of gateways, valid for one version of the routes."""

    def __init__(self, version: int, branches: list[Branch]) -> None:
        self.version = version
        self.branches = branches


class Ways:
    """Routes from this gateway: predecessors and links."""

    def __init__(self, own: int, parents: dict[int, int], links: dict[int, Outbox]) -> None:
        self.own = own
        self._parents = parents
        self.links = links

    def __contains__(self, number: int) -> bool:
        return number in self._parents

    def to(self, number: int) -> list[int]:
        """Return the gateways on the path to one, including it; empty without a path."""
        way: list[int] = []
        while number != self.own:
            way.append(number)
            if number not in self._parents or len(way) > len(self._parents):
                return []
            number = self._parents[number]
        way.reverse()
        return way if way and way[0] in self.links else []

    def branches(self, flags: int, group: bytes, distants: list[RemoteGateway]) -> list[Branch]:
        """Return the branches that reach all destinations, each link at most once."""
        wanted = {distant.number: distant for distant in distants}
        below: dict[int, dict[int, None]] = {}
        lost: list[RemoteGateway] = []
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
            entries: list[PlannedGateway] = []
            _plant(first, below, wanted, entries)
            slots = [wanted.get(entry.number) for entry in entries]
            branches.append(
                Branch(self.links[first], make(flags, group, [self.own], entries), slots)
            )
        if lost:
            entries = [PlannedGateway(distant.number, 0, True) for distant in lost]
            branches.append(Branch(None, make(flags, group, [self.own], entries), list(lost)))
        return branches


def _plant(
    number: int,
    below: dict[int, dict[int, None]],
    wanted: dict[int, RemoteGateway],
    entries: list[PlannedGateway],
) -> None:
    """Append a gateway and its subtree in pre-order."""
    # Not recursive: a path may be longer than the stack is deep.
    stack = [(number, -1)]
    while stack:
        number, at = stack.pop()
        if at >= 0:
            entries[at] = entries[at]._replace(below=len(entries) - at - 1)
            continue
        stack.append((number, len(entries)))
        entries.append(PlannedGateway(number, 0, number in wanted))
        stack.extend((child, -1) for child in reversed(below.get(number, {})))
