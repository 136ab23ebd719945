"""Who has registered here, and what they are told: who else is there.

A gateway that registers is known for as long as its connection lasts. It carries no messages.
"""

from weft.fabric.link import Link
from weft.fabric.members import Members
from weft.fabric.words import ADDRESSES_MAX, Registered


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
        if not link.is_dialled:
            self._addresses[link.peer.number] = address
            self.tick()

    def end(self, link: Link) -> None:
        """A registration is over."""
        self._addresses.pop(link.peer.number, None)
        self._told.pop(link.peer.number, None)

    def tick(self) -> None:
        """Tell those who registered who else is there, if that has changed."""
        for number, address in self._addresses.items():
            others = self._others(address)
            if self._told.get(number) != others:
                self._told[number] = others
                self._links[number].say(Registered(others))

    def _others(self, address: str) -> tuple[str, ...]:
        own = self._members.own.advert.address
        known = [own, *self.addresses]
        known += [member.advert.address for member in self._members.there()]
        # A few are enough: they tell of the rest. Those after it, so that not all get the same few.
        others = sorted(set(known) - {address})
        after = [other for other in others if other > address]
        return tuple((after + others[: len(others) - len(after)])[:ADDRESSES_MAX])
