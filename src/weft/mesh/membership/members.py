"""Table of the known gateways of the mesh, including this one."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator

from weft.mesh.interest.interest_set import WantedSet
from weft.mesh.links.handshake import node_id
from weft.mesh.membership.advert import Advert, SignedAdvert
from weft.mesh.protocol import AdvertWord, Delta, Known

# Bound on known gateways; further ones are rejected.
MEMBERS_MAX = 4096

_MS = 1_000_000
_MIX = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class Member:
    """One gateway: its last advert, its interest, and since when it is unreachable.

    `wanted` may be older than the version in the advert; then a snapshot was requested.
    """

    def __init__(self, signed: SignedAdvert, lost_ns: int) -> None:
        self.node = node_id(signed.advert.key)
        self.signed = signed
        self.wanted = WantedSet()
        # 0: reachable. For a member of the table, changed only by Members.lose() and find().
        self.lost_ns = lost_ns
        # Links that requested its interest before it was known here; and time and link of the
        # request from here.
        self.askers: set[int] = set()
        self.asked_ns = 0
        self.asked = 0
        # Time of the last snapshot that each link requested.
        self.sent_ns: dict[int, int] = {}
        # Deltas that arrived before the version they change, by resulting version.
        self.early: dict[int, Delta] = {}
        # Contribution to the digest and the address index of Members; None if unreachable.
        self.kept_mix = 0
        self.kept_at: str | None = None
        # Adverts received in the current second.
        self.second = 0
        self.adverts = 0

    @property
    def advert(self) -> Advert:
        """Its last advert."""
        return self.signed.advert

    @property
    def number(self) -> int:
        """Its gateway number."""
        return self.signed.advert.number

    @property
    def is_there(self) -> bool:
        """Whether it is reachable and not leaving."""
        return self.lost_ns == 0 and not self.signed.advert.is_leaving

    @property
    def is_missed(self) -> bool:
        """Whether it is unreachable without having left in order."""
        return self.lost_ns != 0 and not self.signed.advert.is_leaving

    @property
    def is_current(self) -> bool:
        """Whether the current version of its interest is known here."""
        advert = self.signed.advert
        return self.wanted.version == advert.version and self.wanted.digest == advert.digest

    @property
    def known(self) -> Known:
        """Versions of its advert and interest that are known here."""
        advert = self.advert
        return Known(self.node, advert.incarnation, advert.sequence, self.wanted.version)

    @property
    def mix(self) -> int:
        """Hash of the version of its advert."""
        advert = self.advert
        mixed = int.from_bytes(self.node[:8], "little") ^ (advert.incarnation * _MIX)
        return (mixed * _MIX + advert.sequence) * _MIX & _MASK

    def word(self, now_ns: int, delta: Delta | None = None) -> AdvertWord:
        """Return its advert as it is forwarded."""
        lost_ms = 0 if self.lost_ns == 0 else max(1, (now_ns - self.lost_ns) // _MS)
        return AdvertWord(self.signed.said, self.signed.signature, delta, lost_ms)


class Members:
    """Members by gateway id and number.

    Derived values are cached and updated with each change, because they are read many times a
    second for up to thousands of members.
    """

    def __init__(self, own: Member) -> None:
        self.own = own
        self._by_node = {own.node: own}
        self._by_number = {own.number: own}
        # Signed bytes of the last adverts.
        self._said = {own.signed.said}
        # Advertised links by gateway number, without leaving gateways and this one.
        self.links: dict[int, frozenset[int]] = {}
        # Sorted ids of the other reachable gateways, and how many of them are at each address.
        self.ring: list[bytes] = []
        self._at: Counter[str] = Counter()
        self._digest = own.kept_mix = own.mix
        # None: to be computed again.
        self._there: list[Member] | None = None
        self._missed: list[Member] | None = None

    def __len__(self) -> int:
        return len(self._by_node)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._by_node.values())

    def __getitem__(self, node: bytes) -> Member:
        return self._by_node[node]

    def get(self, node: bytes) -> Member | None:
        """Return the gateway with an id, if known."""
        return self._by_node.get(node)

    def numbered(self, number: int) -> Member | None:
        """Return the gateway with a number, if known."""
        return self._by_number.get(number)

    def is_said(self, said: bytes) -> bool:
        """Return whether these are the signed bytes of a current advert."""
        return said in self._said

    def add(self, member: Member) -> None:
        """Add a gateway."""
        self._by_node[member.node] = member
        self._by_number[member.number] = member
        self._said.add(member.signed.said)
        self._there = self._missed = None
        self._keep_links(member)
        self._keep(member, is_there=member.is_there)

    def renew(self, member: Member, signed: SignedAdvert) -> None:
        """Store a new advert of a gateway."""
        before = member.advert
        if self._by_number.get(before.number) is member:
            del self._by_number[before.number]
        self._said.discard(member.signed.said)
        self._said.add(signed.said)
        member.signed = signed
        advert = member.advert
        self._by_number[advert.number] = member
        if before.is_leaving != advert.is_leaving:
            self._there = self._missed = None
        if (before.number, before.links, before.is_leaving) != (
            advert.number,
            advert.links,
            advert.is_leaving,
        ):
            self.links.pop(before.number, None)
            self._keep_links(member)
        self._keep(member, is_there=member.is_there)

    def lose(self, member: Member, now_ns: int) -> None:
        """Mark a gateway as unreachable."""
        member.lost_ns = now_ns
        self._there = self._missed = None
        self._keep(member, is_there=False)

    def find(self, member: Member) -> None:
        """Mark a gateway as reachable."""
        member.lost_ns = 0
        self._there = self._missed = None
        self._keep(member, is_there=member.is_there)

    def forget(self, member: Member) -> None:
        """Remove a gateway."""
        del self._by_node[member.node]
        if self._by_number.get(member.number) is member:
            del self._by_number[member.number]
        self._said.discard(member.signed.said)
        self._there = self._missed = None
        self.links.pop(member.number, None)
        self._keep(member, is_there=False)

    def others(self) -> list[Member]:
        """Return all gateways but this one."""
        return [member for member in self._by_node.values() if member is not self.own]

    def there(self) -> list[Member]:
        """Return the other reachable gateways; the same list until they change."""
        if self._there is None:
            self._there = [member for member in self.others() if member.is_there]
        return self._there

    def missed(self) -> list[Member]:
        """Return the other gateways that are unreachable without having left in order."""
        if self._missed is None:
            self._missed = [member for member in self.others() if member.is_missed]
        return self._missed

    def is_at(self, address: str) -> bool:
        """Return whether a reachable gateway advertises an address."""
        return address in self._at

    def digest(self) -> int:
        """Return a digest of the current adverts of all reachable gateways."""
        return self._digest

    def _keep_links(self, member: Member) -> None:
        if member is not self.own and not member.advert.is_leaving:
            self.links[member.number] = frozenset(member.advert.links)

    def _keep(self, member: Member, *, is_there: bool) -> None:
        """Update the digest, the ring and the address index."""
        is_own = member is self.own
        mix = member.mix if is_there or is_own else 0
        self._digest ^= member.kept_mix ^ mix
        member.kept_mix = mix
        if is_own:
            return
        before, now = member.kept_at, member.advert.address if is_there else None
        if before == now:
            return
        member.kept_at = now
        if now is None:
            del self.ring[bisect_left(self.ring, member.node)]
        else:
            self._at[now] += 1
            if before is None:
                insort(self.ring, member.node)
        if before is not None:
            self._at[before] -= 1
            if not self._at[before]:
                del self._at[before]
