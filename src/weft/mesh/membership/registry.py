"""Who has registered here, and what they are told: who else is there.

A gateway that registers is known for as long as its connection lasts. It carries no messages.
"""

from bisect import bisect

from weft.broker.replies import end_with
from weft.errors import TooMany
from weft.mesh.links.dial_targets import is_address
from weft.mesh.links.link import Link
from weft.mesh.membership.members import Members
from weft.mesh.protocol import ADDRESSES_MAX, Registered

# More than a mesh has gateways.
REGISTERED_MAX = 4096


class Registry:
    """Those who registered with this gateway, and those it has registered with."""

    def __init__(self, links: dict[int, Link], members: Members) -> None:
        self._links = links
        self._members = members
        # By the number of the peer: where it can be reached, and what it was last told.
        self._addresses: dict[int, str] = {}
        self._told: dict[int, tuple[str, ...]] = {}

    @property
    def registered_with(self) -> set[str]:
        """The addresses of registries that know this gateway."""
        return {
            link.address
            for link in self._links.values()
            if link.is_registration and link.is_dialled and not link.peer.is_over
        }

    @property
    def addresses(self) -> list[str]:
        """Where those who registered here can be reached."""
        return sorted(set(self._addresses.values()))

    def begin(self, link: Link, address: str) -> None:
        """Somebody registers here, or this gateway has registered there."""
        if link.is_dialled:
            return
        if len(self._addresses) >= REGISTERED_MAX:
            end_with(link.peer, TooMany(f"{REGISTERED_MAX} gateways are registered already"))
            return
        self._addresses[link.peer.number] = address
        self._tell(link.peer.number, self._known())

    def end(self, link: Link) -> None:
        """A registration is over."""
        self._addresses.pop(link.peer.number, None)
        self._told.pop(link.peer.number, None)

    def tick(self) -> None:
        """Tell those who registered who else is there, if that has changed."""
        if not self._addresses:
            return
        known = self._known()
        for number in self._addresses:
            self._tell(number, known)

    def _tell(self, number: int, known: list[str]) -> None:
        # A few are enough: they tell of the rest. Those after it, so that not all get the same few.
        address = self._addresses[number]
        first = bisect(known, address)
        turned = known[first : first + ADDRESSES_MAX + 1] + known[: min(first, ADDRESSES_MAX + 1)]
        others = tuple(each for each in turned if each != address)[:ADDRESSES_MAX]
        if self._told.get(number) != others:
            self._told[number] = others
            self._links[number].say(Registered(others))

    def _known(self) -> list[str]:
        """Every address where a gateway can be reached, in order."""
        known = {self._members.own.advert.address, *self._addresses.values()}
        known.update(member.advert.address for member in self._members.there())
        return sorted(filter(is_address, known))
