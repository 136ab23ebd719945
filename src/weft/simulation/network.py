"""The network between gateways: who can reach whom, how long it takes, and what breaks.

Places are the numbers of machines, which outlive the gateways that run there.
"""

from functools import partial
from random import Random
from typing import Protocol

from weft.simulation.clock import MS, SECOND, Clock
from weft.simulation.wire import Pace, Receiver, Wire

# Whoever dials gives up after this.
DIAL_NS = 2 * SECOND
# After a cut is mended, what waited is sent again within this.
RESEND_MAX_NS = 300 * MS

FAST = Pace(200_000, 300_000, 1 << 30)


class End(Receiver, Protocol):
    """One end of a connection, at some place."""

    outgoing: Wire


class Site(Protocol):
    """What the network must know of a machine."""

    place: int

    @property
    def is_up(self) -> bool:
        """Say if something listens there."""

    @property
    def is_dark(self) -> bool:
        """Say if it does not even answer that nothing listens."""

    def accept(self, outgoing: Wire, incoming: Wire) -> None:
        """Somebody has connected."""

    def connected(self, address: str, outgoing: Wire, incoming: Wire) -> None:
        """What was dialled answers."""

    def unreachable(self, address: str, why: str) -> None:
        """What was dialled does not."""


class Network:
    """All machines, and the connections between them."""

    def __init__(self, clock: Clock, chance: Random) -> None:
        self.clock = clock
        self.chance = chance
        self.sites: dict[str, Site] = {}
        self.paces: dict[tuple[int, int], Pace] = {}
        self.pace = FAST
        # How many of a hundred dials are refused, and how many take long.
        self.refused_percent = 0
        self.late_percent = 0
        self._cuts: dict[tuple[int, int], int] = {}
        # Pairs of wires, the dialler's first.
        self.connections: list[tuple[Wire, Wire]] = []

    def is_cut(self, way: tuple[int, int]) -> bool:
        """Say if nothing gets from one place to another."""
        return way in self._cuts

    def cut(self, ways: list[tuple[int, int]]) -> None:
        """Let nothing through; what is cut twice has to be mended twice."""
        for way in ways:
            self._cuts[way] = self._cuts.get(way, 0) + 1

    def mend(self, ways: list[tuple[int, int]]) -> None:
        """Let through what was cut; it may take a while to be sent again."""
        for way in ways:
            self._cuts[way] -= 1
            if not self._cuts[way]:
                del self._cuts[way]
        for pair in self.connections:
            for wire in pair:
                if not self.is_cut(wire.way):
                    wire.go_on(self.chance.randrange(RESEND_MAX_NS))

    def reset(self, one: int, other: int) -> int:
        """End every connection between two places, and tell both; how many there were."""
        count = 0
        for there, back in self._between(one, other):
            for wire in (there, back):
                receiver = wire.receiver
                wire.swallow()
                if receiver is not None:
                    receiver.hang_up()
            count += 1
        return count

    def change_pace(self, one: int, other: int, pace: Pace) -> None:
        """Let everything between two places take longer, or not any more."""
        for way in ((one, other), (other, one)):
            self.paces[way] = pace
        for there, back in self._between(one, other):
            there.pace = back.pace = pace

    def go_dark(self, place: int) -> None:
        """A machine loses its power: nobody is told, and nothing of its connections goes on."""
        for there, back in self.connections:
            if place in there.way:
                there.swallow()
                back.swallow()

    def dial(self, site: Site, address: str) -> None:
        """Connect a machine with whatever listens at an address; it is told how that went."""
        chance = self.chance
        target = self.sites.get(address)
        tell = partial(self.clock.after, DIAL_NS, partial(site.unreachable, address, "timed out"))
        if target is None or target.is_dark or self._is_apart(site, target):
            tell()
            return
        delay_ns = 2 * self._pace((site.place, target.place)).delay_ns + chance.randrange(MS)
        if chance.randrange(100) < self.late_percent:
            delay_ns += chance.randrange(3 * SECOND)
        if delay_ns >= DIAL_NS:
            tell()
        elif chance.randrange(100) < self.refused_percent:
            self.clock.after(delay_ns, partial(site.unreachable, address, "refused"))
        else:
            self.clock.after(delay_ns, partial(self._connect, site, target, address))

    def _connect(self, site: Site, target: Site, address: str) -> None:
        if self._is_apart(site, target) or target.is_dark:
            # Half of the time that it takes to give up is over.
            self.clock.after(DIAL_NS // 2, partial(site.unreachable, address, "timed out"))
            return
        if not target.is_up:
            site.unreachable(address, "refused")
            return
        there = self._wire(site.place, target.place)
        back = self._wire(target.place, site.place)
        self.connections = [pair for pair in self.connections if not _is_over(pair)]
        self.connections.append((there, back))
        target.accept(back, there)
        site.connected(address, there, back)

    def _wire(self, source: int, target: int) -> Wire:
        wire = Wire(self.clock, self.chance, (source, target), self._pace((source, target)))
        wire.is_cut = self.is_cut
        return wire

    def _pace(self, way: tuple[int, int]) -> Pace:
        return self.paces.get(way, self.pace)

    def _is_apart(self, site: Site, target: Site) -> bool:
        way = (site.place, target.place)
        return self.is_cut(way) or self.is_cut(way[::-1])

    def _between(self, one: int, other: int) -> list[tuple[Wire, Wire]]:
        return [
            pair
            for pair in self.connections
            if set(pair[0].way) == {one, other} and not _is_over(pair)
        ]


def _is_over(pair: tuple[Wire, Wire]) -> bool:
    return pair[0].is_over and pair[1].is_over
