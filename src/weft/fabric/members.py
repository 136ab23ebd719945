"""Every gateway of the mesh that is known here, this one included."""

from collections.abc import Iterator

from weft.fabric.adverts import Advert, Signed
from weft.fabric.handshake import node_id
from weft.fabric.wanted import WantedSet
from weft.fabric.words import AdvertWord, Delta, Known

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
        # 0: there is a way to it.
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
    """All of them, by the id of the gateway and by its number."""

    def __init__(self, own: Member) -> None:
        self.own = own
        self._by_node = {own.node: own}
        self._by_number = {own.number: own}

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

    def add(self, member: Member) -> None:
        """Take note of one that was not known."""
        self._by_node[member.node] = member
        self._by_number[member.number] = member

    def renew(self, member: Member, signed: Signed) -> None:
        """One has said something new."""
        if self._by_number.get(member.number) is member:
            del self._by_number[member.number]
        member.signed = signed
        self._by_number[member.number] = member

    def forget(self, member: Member) -> None:
        """One is no more."""
        del self._by_node[member.node]
        if self._by_number.get(member.number) is member:
            del self._by_number[member.number]

    def others(self) -> list[Member]:
        """All but this one."""
        return [member for member in self._by_node.values() if member is not self.own]

    def there(self) -> list[Member]:
        """Those others that there is a way to."""
        return [member for member in self.others() if member.is_there]

    def digest(self) -> int:
        """What is the same wherever the same adverts are known of those that are there."""
        digest = self.own.mix
        for member in self._by_node.values():
            if member is not self.own and member.is_there:
                digest ^= member.mix
        return digest
