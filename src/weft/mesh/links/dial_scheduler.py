"""Whom to dial, and when: those who were configured, and those with whom a link is wanted.

Whoever is in the mesh already is dialled only if a link to it is wanted; whoever is not is tried
for ever. What falls apart is put together again that way, whichever piece comes first.
"""

from collections.abc import Collection, Iterable, Iterator

from weft.errors import CopiedKey, LinkedToSelf, Refused, WeftError
from weft.mesh.links.dial_targets import (
    DIALS_MAX,
    REMEMBERED_PAUSE_NS,
    Chance,
    Target,
    Targets,
    is_address,
)
from weft.mesh.links.link import Link
from weft.mesh.links.neighbour_selection import are_neighbours, rank, ring_neighbours, wanted
from weft.mesh.membership.members import Member, Members

# Of two that want a link the one with the lower id dials; the other waits so long for it.
YIELD_NS = 1_000_000_000
# Of those that are lost, so many are tried at a time.
LOST_MAX = 4
# Whoever has parted with a link to make room is not asked for it again for a while.
LET_GO_NS = 10_000_000_000
# Whoever was sent on tries the others first, for so long.
SENT_ON_NS = 1_000_000_000
# Whoever was linked with is dialled again after a pause by chance, up to this.
REDIAL_NS = 200_000_000


class Dialling:
    """The addresses to dial for one gateway."""

    def __init__(self, members: Members, address: str, max_links: int, chance: Chance) -> None:
        self.targets = Targets(chance)
        self._members = members
        self._own_address = address
        self.max_links = max_links
        self._chance = chance
        # Since when a link with each gateway is wanted.
        self._wanted_ns: dict[bytes, int] = {}
        # Those that are there by their rank, as long as they are the same; all ranks of them.
        self._there: list[Member] = []
        self._ranked: list[bytes] = []
        self._ranks: dict[bytes, bytes] = {}

    def due(self, linked: Collection[bytes], registered: Collection[str], now_ns: int) -> list[str]:
        """Addresses to dial now; `linked` are gateways, `registered` addresses of registries."""
        targets = self.targets
        free = DIALS_MAX - targets.dialling
        due: list[str] = []
        for target in self._candidates(linked, registered, now_ns):
            if free <= 0:
                break
            if targets.is_due(target, now_ns) and target.address != self._own_address:
                targets.dialled(target)
                due.append(target.address)
                free -= 1
        return due

    def let_go(self, link: Link, now_ns: int) -> None:
        """A link was given up to make room, here or there: do not ask for it again at once."""
        member = self._members.get(link.node)
        if member is not None:
            for target in self._targets([member], now_ns):
                target.next_ns = max(target.next_ns, now_ns + LET_GO_NS)
        elif link.address:
            target = self.targets.at(link.address)
            target.next_ns = max(target.next_ns, now_ns + SENT_ON_NS)

    def settle(self, links: Iterable[Link]) -> None:
        """Links were made: their addresses have no problem."""
        for link in links:
            if link.address:
                self.targets.settled(self.targets.at(link.address))

    def is_there(self, target: Target, linked: Collection[bytes]) -> bool:
        """Return whether the gateway at an address is in the mesh, as far as that is known."""
        return self._members.is_at(target.address) or self._is_found(target, linked)

    def parted(self, link: Link, now_ns: int) -> None:
        """A link that was dialled from here is over."""
        error = link.peer.error
        if isinstance(error, Refused) and not link.is_ready_heard:
            self.missed(link.address, error, str(error), now_ns)
            return
        target = self.targets.at(link.address)
        pause_ns = int(self._chance.random() * REDIAL_NS)
        target.next_ns = max(target.next_ns, now_ns + pause_ns)

    def missed(self, address: str, error: WeftError | None, problem: str, now_ns: int) -> Target:
        """The gateway at an address is not linked with: dial it again, after longer pauses."""
        target = self.targets.at(address)
        target.is_self = isinstance(error, LinkedToSelf)
        if isinstance(error, CopiedKey):
            # It is to be let in soon if it was restarted, and asks seldom if it was copied.
            target.longest_ns = REMEMBERED_PAUSE_NS
        least_ns = REMEMBERED_PAUSE_NS if target.is_self else 0
        self.targets.failed(target, problem, now_ns, least_ns)
        return target

    def look_for(self, member: Member, now_ns: int) -> None:
        """Others ask to have a gateway dialled that they cannot reach: do so if it is lost here."""
        if not member.is_there:
            self._targets([member], now_ns)

    def _candidates(
        self, linked: Collection[bytes], registered: Collection[str], now_ns: int
    ) -> Iterator[Target]:
        fixed = [target for target in self.targets if target.is_fixed]
        for target in fixed:
            if target.is_registry:
                if target.address not in registered:
                    yield target
            elif not self._is_found(target, linked):
                yield target
        members = self._members
        chosen = self._wanted(linked, now_ns)
        yield from self._targets([members[node] for node in chosen], now_ns)
        # Whoever is found there was not lost: it has begun anew as another, at its old address.
        found = [members.get(node) for node in linked]
        addresses = {each.advert.address for each in found if each is not None}
        lost = [each for each in self._lost() if each.node not in linked]
        elsewhere = [each for each in lost if not self._is_at(each.advert.address, addresses)]
        yield from self._targets(elsewhere, now_ns)
        # The last, as anybody can name any address.
        for target in list(self.targets):
            is_offered = target.until_ns > now_ns and not self._is_at(target.address, addresses)
            if is_offered and not self._is_found(target, linked):
                yield target

    def _wanted(self, linked: Collection[bytes], now_ns: int) -> Iterator[bytes]:
        """Those with whom a link is wanted, and is not to be expected from them."""
        own = self._members.own.node
        ranked = self._by_rank(own)
        is_ring = len(ranked) > self.max_links
        ring = ring_neighbours(own, self._members.ring) if is_ring else ranked
        chosen = wanted(ranked, ring, linked, self.max_links)
        for node in list(self._wanted_ns):
            if node not in chosen:
                del self._wanted_ns[node]
        for node in chosen:
            since_ns = self._wanted_ns.setdefault(node, now_ns)
            if own > node and now_ns - since_ns < YIELD_NS:
                continue
            if node in ring or self._members[node].advert.room > 0:
                yield node

    def _by_rank(self, own: bytes) -> list[bytes]:
        """Those that are there, the nearest to being linked with by choice first."""
        there = self._members.there()
        if there is not self._there:
            self._there = there
            nodes = [member.node for member in there]
            before = self._ranks
            self._ranks = {node: before.get(node) or rank(own, node) for node in nodes}
            self._ranked = sorted(nodes, key=self._ranks.__getitem__)
        return self._ranked

    def _lost(self) -> list[Member]:
        """Some of those without a way that it falls to this gateway to look for."""
        members = self._members
        is_ring = len(members.ring) > self.max_links
        mine = [
            member
            for member in members.missed()
            if not is_ring or are_neighbours(member.node, members.own.node, members.ring)
        ]
        if len(mine) <= LOST_MAX:
            return mine
        first = self._chance.randrange(len(mine))
        return [mine[(first + step) % len(mine)] for step in range(LOST_MAX)]

    def _is_at(self, address: str, near: Collection[str]) -> bool:
        """Say if somebody who is there, or linked with, is at an address."""
        return address in near or self._members.is_at(address)

    def _targets(self, members: Iterable[Member], now_ns: int) -> list[Target]:
        """Where gateways say that they are."""
        found: list[Target] = []
        for member in members:
            if is_address(member.advert.address):
                target = self.targets.offer(member.advert.address, now_ns)
                target.node = member.node
                found.append(target)
        return found

    def _is_found(self, target: Target, linked: Collection[bytes]) -> bool:
        """Say if whoever is at an address is in the mesh, or about to be."""
        member = self._members.get(target.node) if target.node else None
        return target.node in linked or (member is not None and member.is_there)
