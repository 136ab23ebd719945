"""Routes from one gateway to all others, with blackhole detection.

A gateway that does not forward is bypassed while there is another path: if a destination
acknowledges nothing, all gateways on the path to it are suspected.
"""

from collections.abc import Mapping

from weft.broker.service import Peer
from weft.mesh.delivery.traffic import Traffic
from weft.mesh.membership.members import Member, Members
from weft.mesh.routing.topology import Edges

# Unacknowledged frames this old indicate a blackhole.
BLAME_NS = 3_000_000_000
# How long a suspected gateway is bypassed.
SHUN_NS = 30_000_000_000


class Survey:
    """Route computation of one gateway."""

    def __init__(self, members: Members, traffic: Traffic, *, is_relay: bool) -> None:
        self._members = members
        self._traffic = traffic
        self._is_relay = is_relay
        self._edges = Edges(members.own.number)
        self._ready: Mapping[int, Peer] = {}
        self.parents: dict[int, int] = {}
        # Inputs of the last computation.
        self._plotted: tuple[object, ...] = ()
        # Suspected gateways, with the end of the time for which each is bypassed.
        self._shunned_ns: dict[int, int] = {}

    def plot(self, ready: Mapping[int, Peer], now_ns: int) -> list[Member]:
        """Compute the routes over these links; return the gateways that became unreachable."""
        members = self._members
        self._ready = ready
        self._edges.update({**members.links, members.own.number: frozenset(ready)}, now_ns)
        plotted = (self._edges.version, set(ready), set(self._shunned_ns))
        if plotted != self._plotted:
            self._plotted = plotted
            self.parents = self._ways(ready)
        self._traffic.plot(self.parents, dict(ready), self._edges)
        lost: list[Member] = []
        for member in members.others():
            if member.number in self.parents:
                if member.lost_ns:
                    members.find(member)
            elif member.lost_ns == 0:
                members.lose(member, now_ns)
                if not member.advert.is_leaving:
                    lost.append(member)
        return lost

    def sweep(self, now_ns: int) -> bool:
        """Update the suspected gateways; return whether routes have to be recomputed."""
        is_other = self._edges.expire(now_ns)
        for number, until_ns in list(self._shunned_ns.items()):
            if until_ns <= now_ns:
                del self._shunned_ns[number]
                is_other = True
        for number in self._traffic.unconfirmed(now_ns - BLAME_NS):
            for between in self._between(number):
                is_other = is_other or between not in self._shunned_ns
                self._shunned_ns[between] = now_ns + SHUN_NS
                self._traffic.counts.refuse("NotBroughtOn", 1)
        return is_other

    def is_reached_without(self, number: int) -> bool:
        """Return whether a neighbour is reachable without its link."""
        near = [other for other in self._ready if other != number]
        return number in self._edges.ways(near)

    def _ways(self, ready: Mapping[int, Peer]) -> dict[int, int]:
        if not self._is_relay:
            return dict.fromkeys(ready, self._members.own.number)
        if not self._shunned_ns:
            return self._edges.ways(ready)
        # A suspected gateway remains a destination, and is a hop only without an alternative.
        around = self._edges.ways(ready, self._shunned_ns)
        return {**self._edges.ways(ready), **around}

    def _between(self, number: int) -> list[int]:
        """Return the gateways on the path to one, excluding it."""
        found: list[int] = []
        own = self._members.own.number
        while number in self.parents and len(found) <= len(self.parents):
            number = self.parents[number]
            if number == own:
                break
            found.append(number)
        return found
