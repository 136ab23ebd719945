"""Gateways of a service that clients may connect to, and their ranking.

The ranking uses what gateways advertise: the requested region first, then lower load. Clients can
refine it with measured round-trip times.
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
    from weft.mesh.node import MeshNode

# Alternatives that a draining gateway offers to its clients.
ELSEWHERE_MAX = 3
# Most candidates in one response.
CANDIDATES_MAX = 1000

_THERE = {"here", "linked", "reached"}


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One gateway of one service; an empty address stands for the gateway that was asked."""

    name: str
    address: str
    region: str
    # A level of mesh/membership/load_level.py.
    load: int
    state: str
    is_draining: bool
    service: str


def candidates(service: Service, fabric: "MeshNode | None") -> list[Candidate]:
    """Return all known gateways of a service, this one first.

    Without a mesh it is the only one, and its address is unknown.
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
    """Return the candidate for a gateway without a mesh."""
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
    """Return the available candidates, the best first."""
    fit = [each for each in found if each.state in _THERE and not each.is_draining]
    # The name as the last key keeps the order stable between requests.
    fit.sort(key=lambda each: (each.region != region, each.load, each.name, each.address))
    return fit[:limit]


def elsewhere(service: Service, fabric: "MeshNode | None", region: str) -> list[str]:
    """Return the addresses that clients of a draining gateway should use, the best first."""
    if fabric is None:
        return []
    others = [each for each in candidates(service, fabric) if each.state != "here"]
    return [each.address for each in ranked(others, region, ELSEWHERE_MAX)]


def reachable(address: str) -> str:
    """Return an address if it can be dialled, else an empty string."""
    return address if _is_dialled(address) else ""


def _is_dialled(address: str) -> bool:
    """Return whether an advertised address is valid: other gateways may send any text."""
    try:
        found: Address = addresses_from([address])[0]
    except BadOption:
        return False
    try:
        return not ipaddress.ip_address(found.host).is_unspecified
    except ValueError:
        # A host name.
        return True


def _order(each: Candidate) -> tuple[bool, str, str]:
    return each.state != "here", each.name, each.address
