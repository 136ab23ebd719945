"""The gateways of a service that clients may go to, as one gateway knows them, and in which order.

What others declare is a first guess: the region that somebody asks for comes before all others, a
gateway with less load before one with more. How far each really is only whoever asks can measure.
"""

import ipaddress
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from weft.broker.service import Service
from weft.errors import BadOption
from weft.mesh.membership.load_level import step_of, weight_of
from weft.mesh.report import namer, state_of
from weft.wire.address import Address, addresses_from

if TYPE_CHECKING:
    from weft.mesh.node import Fabric

# Those that a draining gateway names to whoever has to leave it.
ELSEWHERE_MAX = 3
# More are never told in one answer.
CANDIDATES_MAX = 1000

_THERE = {"here", "linked", "reached"}


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One gateway of one service; an empty address is that of whoever was asked."""

    name: str
    address: str
    region: str
    # A step of mesh/membership/load_level.py.
    load: int
    state: str
    is_draining: bool
    service: str


def candidates(service: Service, fabric: "Fabric | None") -> list[Candidate]:
    """All gateways of a service that are known, this one the first.

    Without a mesh it is the only one, and does not know where it is.
    """
    if fabric is None:
        step = step_of(weight_of(service))
        return [lone(service.name, service.gateway, load=step)]
    name = namer(service, fabric)
    own = fabric.members.own
    found = [
        Candidate(
            name=name(member.number),
            address=reachable(member.advert.address),
            region=member.advert.region,
            load=member.advert.load,
            state=state_of(fabric, member),
            is_draining=member.advert.is_draining,
            service=service.name,
        )
        for member in fabric.members
        if member is own or _is_dialled(member.advert.address)
    ]
    return sorted(found, key=_order)[:CANDIDATES_MAX]


def lone(service: str, name: str, *, load: int = 0) -> Candidate:
    """A gateway that knows no other."""
    return Candidate(
        name=name,
        address="",
        region="",
        load=load,
        state="here",
        is_draining=False,
        service=service,
    )


def ranked(found: Iterable[Candidate], region: str, limit: int) -> list[Candidate]:
    """Those that can be gone to, the best guess first."""
    fit = [each for each in found if each.state in _THERE and not each.is_draining]
    # By name at last: whoever asks twice is told the same.
    fit.sort(key=lambda each: (each.region != region, each.load, each.name, each.address))
    return fit[:limit]


def elsewhere(service: Service, fabric: "Fabric | None", region: str) -> list[str]:
    """Where those should go who have to leave this gateway, the best guess first."""
    if fabric is None:
        return []
    others = [each for each in candidates(service, fabric) if each.state != "here"]
    return [each.address for each in ranked(others, region, ELSEWHERE_MAX)]


def reachable(address: str) -> str:
    """An address that somebody could dial; empty if only whoever asked knows one."""
    return address if _is_dialled(address) else ""


def _is_dialled(address: str) -> bool:
    """Say if an address leads anywhere: it comes from another gateway, which may say anything."""
    try:
        found: Address = addresses_from([address])[0]
    except BadOption:
        return False
    try:
        return not ipaddress.ip_address(found.host).is_unspecified
    except ValueError:
        # A name.
        return True


def _order(each: Candidate) -> tuple[bool, str, str]:
    return each.state != "here", each.name, each.address
