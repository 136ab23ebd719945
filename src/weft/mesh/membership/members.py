"""Every gateway of the mesh that is known here, this one included."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator

from weft.mesh.interest.interest_set import WantedSet
from weft.mesh.links.handshake import node_id
from weft.mesh.membership.advert import Advert, Signed
from weft.mesh.protocol import AdvertWord, Delta, Known

# More than a mesh of this kind is made for; beyond it newcomers are not taken note of.
MEMBERS_MAX = 4096

_MS = 1_000_000
_MIX = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class Member:
    """One gateway: what it last said, what it wants, and since when there is no way to it.

    `wanted` may be of an older version than the advert names: then it was asked for.
    """

    def __init__(self, signed: Signed, lost_ns: int) -> None:
        self.node = node_id(signed.advert.key)
        self.signed = signed
        self.wanted = WantedSet()
        # 0: there is a way to it. Once it is a member, only Members.lose() and find() change it.
        self.lost_ns = lost_ns
        # Those links that asked for what it wants before that was known here; and when, and by
        # which link, it was asked for from here.
        self.askers: set[int] = set()
        self.asked_ns = 0
        self.asked = 0
        # When each link was last sent all that it wants, because it asked.
        self.sent_ns: dict[int, int] = {}
        # Changes that came before what they change did, by the versions that they lead to.
        self.early: dict[int, Delta] = {}
        # What Members has kept of it: its part of the digest, and where it is, if it is there.
        self.kept_mix = 0
        self.kept_at: str | None = None
        # How many adverts came in this second.
        self.second = 0
        self.adverts = 0

    @property
    def advert(self) -> Advert:
        """What it last said."""
        return self.signed.advert

    @property
    def number(self) -> int:
        """Its number in messages."""
        return self.signed.advert.number

    @property
    def is_there(self) -> bool:
        """Say if there is a way to it."""
        return self.lost_ns == 0 and not self.signed.advert.is_leaving

    @property
    def is_missed(self) -> bool:
        """Say if there is no way to it, and it did not say that it leaves."""
        return self.lost_ns != 0 and not self.signed.advert.is_leaving

    @property
    def is_current(self) -> bool:
        """Say if it is known what it wants now."""
        advert = self.signed.advert
        return self.wanted.version == advert.version and self.wanted.digest == advert.digest

    @property
    def known(self) -> Known:
        """Which advert, and which version of what it wants, is known here."""
        advert = self.advert
        return Known(self.node, advert.incarnation, advert.sequence, self.wanted.version)

    @property
    def mix(self) -> int:
        """A digest of which advert is known."""
        advert = self.advert
        mixed = int.from_bytes(self.node[:8], "little") ^ (advert.incarnation * _MIX)
        return (mixed * _MIX + advert.sequence) * _MIX & _MASK

    def word(self, now_ns: int, delta: Delta | None = None) -> AdvertWord:
        """Its advert as it is passed on."""
        lost_ms = 0 if self.lost_ns == 0 else max(1, (now_ns - self.lost_ns) // _MS)
        return AdvertWord(self.signed.said, self.signed.signature, delta, lost_ms)


class Members:
    """All of them, by the id of the gateway and by its number.

    What follows from who is there is kept, and changed with them only: it is asked for many times a
    second, and there may be thousands of them.
    """

    def __init__(self, own: Member) -> None:
        self.own = own
        self._by_node = {own.node: own}
        self._by_number = {own.number: own}
        # What each last said, as it was signed.
        self._said = {own.signed.said}
        # What each of the others says of its links, by its number; of those that leave nothing.
        self.links: dict[int, frozenset[int]] = {}
        # The ids of those others that are there, in order; and how many of them are at an address.
        self.ring: list[bytes] = []
        self._at: Counter[str] = Counter()
        self._digest = own.kept_mix = own.mix
        # None: to be listed anew.
        self._there: list[Member] | None = None
        self._missed: list[Member] | None = None

    def __len__(self) -> int:
        return len(self._by_node)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._by_node.values())

    def __getitem__(self, node: bytes) -> Member:
        return self._by_node[node]

    def get(self, node: bytes) -> Member | None:
        """The gateway with an id, if it is known."""
        return self._by_node.get(node)

    def numbered(self, number: int) -> Member | None:
        """The gateway with a number, if it is known."""
        return self._by_number.get(number)

    def is_said(self, said: bytes) -> bool:
        """Say if these are the very bytes that one of them has said last."""
        return said in self._said

    def add(self, member: Member) -> None:
        """Take note of one that was not known."""
        self._by_node[member.node] = member
        self._by_number[member.number] = member
        self._said.add(member.signed.said)
        self._there = self._missed = None
        self._keep_links(member)
        self._keep(member, is_there=member.is_there)

    def renew(self, member: Member, signed: Signed) -> None:
        """One has said something new."""
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
        """There is no way to one any more."""
        member.lost_ns = now_ns
        self._there = self._missed = None
        self._keep(member, is_there=False)

    def find(self, member: Member) -> None:
        """There is a way to one."""
        member.lost_ns = 0
        self._there = self._missed = None
        self._keep(member, is_there=member.is_there)

    def forget(self, member: Member) -> None:
        """One is no more."""
        del self._by_node[member.node]
        if self._by_number.get(member.number) is member:
            del self._by_number[member.number]
        self._said.discard(member.signed.said)
        self._there = self._missed = None
        self.links.pop(member.number, None)
        self._keep(member, is_there=False)

    def others(self) -> list[Member]:
        """All but this one."""
        return [member for member in self._by_node.values() if member is not self.own]

    def there(self) -> list[Member]:
        """Those others that there is a way to; the same list until they are others."""
        if self._there is None:
            self._there = [member for member in self.others() if member.is_there]
        return self._there

    def missed(self) -> list[Member]:
        """Those others that there is no way to, and that did not say that they leave."""
        if self._missed is None:
            self._missed = [member for member in self.others() if member.is_missed]
        return self._missed

    def is_at(self, address: str) -> bool:
        """Say if one of those that are there can be reached at an address, as it says."""
        return address in self._at

    def digest(self) -> int:
        """What is the same wherever the same adverts are known of those that are there."""
        return self._digest

    def _keep_links(self, member: Member) -> None:
        if member is not self.own and not member.advert.is_leaving:
            self.links[member.number] = frozenset(member.advert.links)

    def _keep(self, member: Member, *, is_there: bool) -> None:
        """Have the digest, the ring and the addresses follow what one is now."""
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
