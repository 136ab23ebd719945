"""Simulated network between gateways: reachability, delays and faults.

Places are the numbers of machines, which outlive the gateways that run there.
"""

from functools import partial
from random import Random
from typing import NamedTuple, Protocol

from weft.simulation.clock import MS, SECOND, Clock
from weft.simulation.wire import Pace, Wire

# Timeout of a dial.
DIAL_NS = 2 * SECOND
# Interval of connection attempts without an answer.
RETRY_NS = SECOND
# Longest delay of retransmissions after a cut is repaired.
RESEND_MAX_NS = 300 * MS

FAST = Pace(200_000, 300_000, 1 << 30)

_MANY = 256


class Site(Protocol):
    """Machine as seen by the network."""

    place: int

    @property
    def is_up(self) -> bool:
        """Whether a gateway listens there."""

    @property
    def is_dark(self) -> bool:
        """Whether it does not even refuse connections."""

    def accept(self, outgoing: Wire, incoming: Wire) -> None:
        """Handle an accepted connection."""

    def connected(self, address: str, outgoing: Wire, incoming: Wire) -> None:
        """Handle a successful dial."""

    def unreachable(self, address: str, why: str) -> None:
        """Handle a failed dial."""


class Dial(NamedTuple):
    """Connection attempt with its deadline."""

    site: Site
    address: str
    until_ns: int


class Network:
    """Machines and the connections between them."""

    def __init__(self, clock: Clock, chance: Random) -> None:
        self.clock = clock
        self.chance = chance
        self.sites: dict[str, Site] = {}
        self.paces: dict[tuple[int, int], Pace] = {}
        self.pace = FAST
        # Percentages of dials that are refused and that are slow.
        self.refused_percent = 0
        self.late_percent = 0
        self._cuts: dict[tuple[int, int], int] = {}
        # Pairs of wires, the dialler's first.
        self.connections: list[tuple[Wire, Wire]] = []
        self._look_at = 0

    def is_cut(self, way: tuple[int, int]) -> bool:
        """Return whether a direction between two places is blocked."""
        return way in self._cuts

    def cut(self, ways: list[tuple[int, int]]) -> None:
        """Block directions; a direction blocked twice has to be unblocked twice."""
        for way in ways:
            self._cuts[way] = self._cuts.get(way, 0) + 1

    def mend(self, ways: list[tuple[int, int]]) -> None:
        """Unblock directions; retransmissions may take a while."""
        for way in ways:
            self._cuts[way] -= 1
            if not self._cuts[way]:
                del self._cuts[way]
        for pair in self.connections:
            for wire in pair:
                if not self.is_cut(wire.way):
                    wire.go_on(self.chance.randrange(RESEND_MAX_NS))

    def reset(self, one: int, other: int) -> int:
        """Reset all connections between two places; return their number."""
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
        """Change the delay and bandwidth between two places."""
        for way in ((one, other), (other, one)):
            self.paces[way] = pace
        for there, back in self._between(one, other):
            there.pace = back.pace = pace

    def go_dark(self, place: int) -> None:
        """Cut the power of a machine: its connections stall without a reset."""
        for there, back in self.connections:
            if place in there.way:
                there.swallow()
                back.swallow()

    def dial(self, site: Site, address: str) -> None:
        """Dial an address; the machine is notified of the result."""
        self._try(Dial(site, address, self.clock.now_ns + DIAL_NS))

    def _try(self, dial: Dial) -> None:
        """Attempt to connect, retrying like TCP while there is no answer."""
        clock, chance = self.clock, self.chance
        target = self.sites.get(dial.address)
        if target is None or target.is_dark or self._is_apart(dial.site, target):
            if clock.now_ns + RETRY_NS < dial.until_ns:
                clock.after(RETRY_NS, partial(self._try, dial))
            else:
                clock.at(dial.until_ns, partial(dial.site.unreachable, dial.address, "timed out"))
            return
        pace = self._pace((dial.site.place, target.place))
        delay_ns = 2 * pace.delay_ns + chance.randrange(MS)
        if chance.randrange(100) < self.late_percent:
            delay_ns += chance.randrange(DIAL_NS)
        if clock.now_ns + delay_ns >= dial.until_ns:
            clock.at(dial.until_ns, partial(dial.site.unreachable, dial.address, "timed out"))
        elif chance.randrange(100) < self.refused_percent:
            clock.after(delay_ns, partial(dial.site.unreachable, dial.address, "refused"))
        else:
            clock.after(delay_ns, partial(self._connect, dial, target))

    def _connect(self, dial: Dial, target: Site) -> None:
        site = dial.site
        if self._is_apart(site, target) or target.is_dark:
            self._try(dial)
            return
        if not target.is_up:
            site.unreachable(dial.address, "refused")
            return
        there = self._wire(site.place, target.place)
        back = self._wire(target.place, site.place)
        if len(self.connections) >= self._look_at:
            self.connections = [pair for pair in self.connections if not _is_over(pair)]
            left = len(self.connections)
            # Purge rarely while there are many connections.
            self._look_at = 2 * left if left > _MANY else 0
        self.connections.append((there, back))
        target.accept(back, there)
        site.connected(dial.address, there, back)

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
