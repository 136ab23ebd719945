"""Schedule of dials: configured addresses, and gateways that should be linked.

Reachable gateways are dialled only if a link to them is missing; unreachable ones are retried
indefinitely, so that a split mesh always rejoins.
"""

from collections.abc import Collection, Iterable, Iterator

from weft.errors import CopiedKey, LinkedToSelf, Refused, WeftError
from weft.mesh.links.dial_targets import (
    DIALS_MAX,
    REMEMBERED_PAUSE_NS,
    DialTarget,
    RandomSource,
    Targets,
    is_address,
)
from weft.mesh.links.link import Link
from weft.mesh.links.neighbour_selection import are_neighbours, rank, ring_neighbours, wanted
from weft.mesh.membership.members import Member, Members

# Of two gateways that need a link the one with the lower id dials; the other waits this long.
YIELD_NS = 1_000_000_000
# Bound on lost gateways that are tried at a time.
LOST_MAX = 4
# Pause before dialling a gateway again after a link was closed because of a limit.
LET_GO_NS = 10_000_000_000
# Pause before dialling a gateway again that redirected this one.
SENT_ON_NS = 1_000_000_000
# Longest random pause before dialling the gateway of a lost link again.
REDIAL_NS = 200_000_000


class Dialling:
    """Dial schedule of one gateway."""

    def __init__(
        self, members: Members, address: str, max_links: int, chance: RandomSource
    ) -> None:
        self.targets = Targets(chance)
        self._members = members
        self._own_address = address
        self.max_links = max_links
        self._chance = chance
        # Time since which a link to each gateway has been needed.
        self._wanted_ns: dict[bytes, int] = {}
        # Cache: reachable gateways, the same by rank, and their ranks.
        self._there: list[Member] = []
        self._ranked: list[bytes] = []
        self._ranks: dict[bytes, bytes] = {}

    def due(self, linked: Collection[bytes], registered: Collection[str], now_ns: int) -> list[str]:
        """Return the addresses to dial now, given the linked gateways and the registries in use."""
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
        """Pause dialling a gateway after a link was closed because of a limit."""
        member = self._members.get(link.node)
        if member is not None:
            for target in self._targets([member], now_ns):
                target.next_ns = max(target.next_ns, now_ns + LET_GO_NS)
        elif link.address:
            target = self.targets.at(link.address)
            target.next_ns = max(target.next_ns, now_ns + SENT_ON_NS)

    def settle(self, links: Iterable[Link]) -> None:
        """Clear the problems of the addresses of working links."""
        for link in links:
            if link.address:
                self.targets.settled(self.targets.at(link.address))

    def is_there(self, target: DialTarget, linked: Collection[bytes]) -> bool:
        """Return whether the gateway at an address is in the mesh, as far as known."""
        return self._members.is_at(target.address) or self._is_found(target, linked)

    def parted(self, link: Link, now_ns: int) -> None:
        """Schedule the next dial after a link that was dialled from here has ended."""
        error = link.peer.error
        if isinstance(error, Refused) and not link.is_ready_heard:
            self.missed(link.address, error, str(error), now_ns)
            return
        target = self.targets.at(link.address)
        pause_ns = int(self._chance.random() * REDIAL_NS)
        target.next_ns = max(target.next_ns, now_ns + pause_ns)

    def missed(
        self, address: str, error: WeftError | None, problem: str, now_ns: int
    ) -> DialTarget:
        """Schedule the next dial of an address after a failure, with back-off."""
        target = self.targets.at(address)
        target.is_self = isinstance(error, LinkedToSelf)
        if isinstance(error, CopiedKey):
            # Retry soon in case it restarted, rarely in case its key was copied.
            target.longest_ns = REMEMBERED_PAUSE_NS
        least_ns = REMEMBERED_PAUSE_NS if target.is_self else 0
        self.targets.failed(target, problem, now_ns, least_ns)
        return target

    def look_for(self, member: Member, now_ns: int) -> None:
        """Dial a gateway on behalf of others that cannot reach it, if it is lost here as well."""
        if not member.is_there:
            self._targets([member], now_ns)

    def _candidates(
        self, linked: Collection[bytes], registered: Collection[str], now_ns: int
    ) -> Iterator[DialTarget]:
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
        # An address with a linked gateway is skipped: a new installation replaced the lost one.
        found = [members.get(node) for node in linked]
        addresses = {each.advert.address for each in found if each is not None}
        lost = [each for each in self._lost() if each.node not in linked]
        elsewhere = [each for each in lost if not self._is_at(each.advert.address, addresses)]
        yield from self._targets(elsewhere, now_ns)
        # Last, because any gateway can offer any address.
        for target in list(self.targets):
            is_offered = target.until_ns > now_ns and not self._is_at(target.address, addresses)
            if is_offered and not self._is_found(target, linked):
                yield target

    def _wanted(self, linked: Collection[bytes], now_ns: int) -> Iterator[bytes]:
        """Return the gateways to dial, except those expected to dial this one."""
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
        """Return the reachable gateways by rank."""
        there = self._members.there()
        if there is not self._there:
            self._there = there
            nodes = [member.node for member in there]
            before = self._ranks
            self._ranks = {node: before.get(node) or rank(own, node) for node in nodes}
            self._ranked = sorted(nodes, key=self._ranks.__getitem__)
        return self._ranked

    def _lost(self) -> list[Member]:
        """Return some of the lost gateways that this gateway is responsible for."""
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
        """Return whether a reachable or linked gateway has an address."""
        return address in near or self._members.is_at(address)

    def _targets(self, members: Iterable[Member], now_ns: int) -> list[DialTarget]:
        """Return the targets for the advertised addresses of gateways."""
        found: list[DialTarget] = []
        for member in members:
            if is_address(member.advert.address):
                target = self.targets.offer(member.advert.address, now_ns)
                target.node = member.node
                found.append(target)
        return found

    def _is_found(self, target: DialTarget, linked: Collection[bytes]) -> bool:
        """Return whether the gateway at an address is linked or reachable."""
        member = self._members.get(target.node) if target.node else None
        return target.node in linked or (member is not None and member.is_there)
