"""Detects running gateways that share an identity, as after copying a data folder.

The linked gateway keeps the identity. A restarted gateway replaces its old link: it has the same
address and a later start, or the old link is silent or closed.
"""

from collections.abc import Callable

from weft.errors import CopiedKey, Refused, SameNumber, shortened
from weft.mesh.links.handshake import REMEDY
from weft.mesh.links.link import Link, mesh_links
from weft.mesh.membership.advert import Advert
from weft.mesh.membership.members import Member, Members

# A link that is silent for this long may be dead without having been closed yet.
DOUBTFUL_NS = 1_000_000_000


class Copies:
    """Detector of other gateways with an identity that is in use."""

    def __init__(self, members: Members, links: dict[int, Link]) -> None:
        self._members = members
        self._links = links
        # Called with the id of the gateway and a text for the operator.
        self.on_found: Callable[[str, str], None] | None = None

    def refusal(self, link: Link) -> Refused | None:
        """Return why a new link is refused: its identity or number is in use; or None."""
        holder = self._members.numbered(link.number)
        if holder is not None and holder.node != link.node:
            return SameNumber(f"number {link.number} is that of another gateway")
        old = self._linked(link.node)
        member = self._members.get(link.node)
        if old is not None:
            if old.number == link.number or _is_restart(link, old):
                return None
            name, address = old.peer.name, old.advertised
        elif member is not None and _is_elsewhere(member, link):
            name, address = member.advert.name, member.advert.address
        else:
            return None
        place = f"{shortened(name)} at {shortened(address)}"
        return CopiedKey(f"{place} has the same node.key and is linked: {REMEDY}")

    def is_copy(self, member: Member, advert: Advert) -> bool:
        """Return whether an advert is from a copy of a linked gateway."""
        old = self._linked(member.node)
        if old is None or old.number != member.number or advert.number == member.number:
            return False
        if advert.address == old.advertised or _is_doubtful(old):
            return False
        text = (
            f"two gateways have the same node.key: {shortened(old.peer.name)} at"
            f" {shortened(old.advertised)} is linked, {shortened(advert.name)} at"
            f" {shortened(advert.address)} is elsewhere in the mesh; {REMEDY}"
        )
        self._found(member.node, text)
        return True

    def of_this(self, advert: Advert) -> None:
        """Report another gateway with the identity of this one that keeps advertising."""
        text = (
            f"{shortened(advert.name)} at {shortened(advert.address)} has the node.key of this"
            f" gateway; {REMEDY}"
        )
        self._found(self._members.own.node, text)

    def _linked(self, node: bytes) -> Link | None:
        for link in mesh_links(self._links):
            if link.node == node:
                return link
        return None

    def _found(self, node: bytes, text: str) -> None:
        if self.on_found is not None:
            self.on_found(node.hex(), text)


def _is_restart(link: Link, old: Link) -> bool:
    """Return whether a new link is from the same gateway after a restart."""
    is_later = link.incarnation > old.incarnation
    return _is_doubtful(old) or (link.advertised == old.advertised and is_later)


def _is_doubtful(old: Link) -> bool:
    return old.silent_ns(old.peer.service.now_ns) > DOUBTFUL_NS


def _is_elsewhere(member: Member, link: Link) -> bool:
    """Return whether another gateway with this identity is reachable in the mesh."""
    is_other = member.number != link.number and member.advert.address != link.advertised
    return member.is_there and is_other
