"""Registry: introduces the registered gateways to each other.

A registration lasts as long as its connection, which carries no messages.
"""

from bisect import bisect

from weft.broker.replies import end_with
from weft.errors import TooMany
from weft.mesh.links.dial_targets import is_address
from weft.mesh.links.link import Link
from weft.mesh.membership.members import Members
from weft.mesh.protocol import ADDRESSES_MAX, RegistrationConfirmed

# Bound on registrations, above the size of a mesh.
REGISTERED_MAX = 4096


class RegistrationTable:
    """Registrations with this gateway, and of this gateway with others."""

    def __init__(self, links: dict[int, Link], members: Members) -> None:
        self._links = links
        self._members = members
        # By peer number: its address, and the addresses that it was last sent.
        self._addresses: dict[int, str] = {}
        self._told: dict[int, tuple[str, ...]] = {}

    @property
    def registered_with(self) -> set[str]:
        """Addresses of the registries that know this gateway."""
        return {
            link.address
            for link in self._links.values()
            if link.is_registration and link.is_dialled and not link.peer.is_over
        }

    @property
    def addresses(self) -> list[str]:
        """Addresses of the registered gateways."""
        return sorted(set(self._addresses.values()))

    def begin(self, link: Link, address: str) -> None:
        """Begin a registration, in either direction."""
        if link.is_dialled:
            return
        if len(self._addresses) >= REGISTERED_MAX:
            end_with(link.peer, TooMany(f"{REGISTERED_MAX} gateways are registered already"))
            return
        self._addresses[link.peer.number] = address
        self._tell(link.peer.number, self._known())

    def end(self, link: Link) -> None:
        """Remove a registration."""
        self._addresses.pop(link.peer.number, None)
        self._told.pop(link.peer.number, None)

    def tick(self) -> None:
        """Send changed addresses to the registered gateways."""
        if not self._addresses:
            return
        known = self._known()
        for number in self._addresses:
            self._tell(number, known)

    def _tell(self, number: int, known: list[str]) -> None:
        # A few suffice, as gossip brings the rest. Each gets the ones after its own address.
        address = self._addresses[number]
        first = bisect(known, address)
        turned = known[first : first + ADDRESSES_MAX + 1] + known[: min(first, ADDRESSES_MAX + 1)]
        others = tuple(each for each in turned if each != address)[:ADDRESSES_MAX]
        if self._told.get(number) != others:
            self._told[number] = others
            self._links[number].say(RegistrationConfirmed(others))

    def _known(self) -> list[str]:
        """Return all dialable addresses, sorted."""
        known = {self._members.own.advert.address, *self._addresses.values()}
        known.update(member.advert.address for member in self._members.there())
        return sorted(filter(is_address, known))
