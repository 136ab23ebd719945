"""Which links may stay: one with each gateway, and no more than were allowed.

A gateway that has as many as it may still takes in its neighbours on the ring, and whoever has no
other way into the mesh, as long as a few places are spare; others are told where to go instead.
"""

from weft.broker.replies import end_with
from weft.errors import DoubledLink
from weft.mesh.links.dial_targets import Chance
from weft.mesh.links.link import Link, mesh_links
from weft.mesh.links.neighbour_selection import SPARE, are_neighbours, ring_neighbours
from weft.mesh.membership.members import Members
from weft.mesh.protocol import ADDRESSES_MAX, Goodbye, Redirect

# A link that was silent for so long may be gone, and nobody was told yet.
_DOUBTFUL_NS = 1_000_000_000


class Welcome:
    """Decides for one gateway."""

    def __init__(
        self, members: Members, links: dict[int, Link], max_links: int, chance: Chance
    ) -> None:
        self._members = members
        self._links = links
        self.max_links = max_links
        self._chance = chance

    def admit(self, link: Link) -> bool:
        """Say if a new link may stay; if not, it is ended, and the other side told why."""
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
        """Say if a new link is to be kept, and not the one that is there: both sides agree."""
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
        """Addresses where one that finds no place here should: its neighbours first."""
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
    """End a link on purpose."""
    link.ending = "this gateway has as many links as it may"
    link.say(Goodbye())
    link.peer.end(None)
