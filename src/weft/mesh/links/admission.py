"""Admission of links: one per gateway pair, and a limited number per gateway.

A gateway at its limit still accepts its neighbours on the consistent-hash ring, and up to SPARE
gateways that are not reachable in the mesh; others are redirected.
"""

from weft.broker.replies import end_with
from weft.errors import DoubledLink
from weft.mesh.links.dial_targets import RandomSource
from weft.mesh.links.link import Link, mesh_links
from weft.mesh.links.neighbour_selection import SPARE, are_neighbours, ring_neighbours
from weft.mesh.membership.members import Members
from weft.mesh.protocol import ADDRESSES_MAX, Goodbye, Redirect

# A link that is silent for this long may be dead without having been closed yet.
_DOUBTFUL_NS = 1_000_000_000


class Welcome:
    """Admission decisions of one gateway."""

    def __init__(
        self, members: Members, links: dict[int, Link], max_links: int, chance: RandomSource
    ) -> None:
        self._members = members
        self._links = links
        self.max_links = max_links
        self._chance = chance

    def admit(self, link: Link) -> bool:
        """Return whether a new link is kept; otherwise reject or redirect it."""
        for other in mesh_links(self._links):
            if other is not link and other.node == link.node:
                ending = other if self._is_better(link, other) else link
                end_with(ending.peer, DoubledLink("these two gateways are linked already"))
                if ending is link:
                    return False
        if link.is_dialled or self._has_place(link):
            return True
        link.say(Redirect(self._others_for(link.node)))
        let_go(link)
        return False

    def _is_better(self, link: Link, old: Link) -> bool:
        """Return whether a new link replaces a duplicate; both sides decide alike."""
        if link.number != old.number or link.is_dialled == old.is_dialled:
            return True
        if old.silent_ns(link.since_ns) > _DOUBTFUL_NS:
            return True
        return link.is_dialled == (self._members.own.node < link.node)

    def _has_place(self, link: Link) -> bool:
        count = len(mesh_links(self._links))
        if count <= self.max_links:
            return True
        members = self._members
        member = members.get(link.node)
        is_there = member is not None and member.is_there
        if not is_there and count <= self.max_links + SPARE:
            return True
        is_neighbour = are_neighbours(members.own.node, link.node, members.ring)
        return is_neighbour and count <= 2 * self.max_links + SPARE

    def _others_for(self, node: bytes) -> tuple[str, ...]:
        """Return addresses to redirect a gateway to: its ring neighbours first."""
        members = self._members
        ring = ring_neighbours(node, members.ring)
        free = [
            each
            for each in members.there()
            if each.advert.room > 0 and each.node != node and each.node not in ring
        ]
        if free:
            start = self._chance.randrange(len(free))
            free = free[start:] + free[:start]
        chosen = [members[each] for each in ring] + free
        return tuple(dict.fromkeys(each.advert.address for each in chosen))[: ADDRESSES_MAX // 2]


def let_go(link: Link) -> None:
    """Close a link of a gateway that is at its limit."""
    link.ending = "this gateway is at its limit of links"
    link.say(Goodbye())
    link.peer.end(None)
