"""The mesh as one gateway knows it, as plain values for people and tools.

Lists are bounded by a limit; `more_` fields count the entries that were left out.
"""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.broker.service import Service
from weft.mesh.counters import TrafficCounts
from weft.mesh.interest.local_interest import FOR_ITSELF
from weft.mesh.links.dial_targets import DialTarget
from weft.mesh.links.link import Link, mesh_links
from weft.mesh.membership.load_level import step_of, weight_of
from weft.mesh.routing.topology import hops
from weft.mesh.trace.local_matches import heard_by, route_to

if TYPE_CHECKING:
    from weft.mesh.membership.members import Member
    from weft.mesh.node import MeshNode

Facts = dict[str, Any]
Name = Callable[[int], str]

_MS = 1_000_000
_S = 1_000_000_000
# Problems of an address are left out if its gateway is reached and no attempt is due.
_STALE_NS = 5 * _S
_COUNTS = (
    *("sent", "received", "passed_on", "resent", "held", "shed", "doubled", "unserved"),
    *("dropped", "lost", "gaps"),
)


def mesh_facts(service: Service, fabric: "MeshNode | None", limit: int) -> Facts:
    """Report the gateways of a mesh, the links of this one, and unreachable addresses.

    Without a mesh this gateway is the only one.
    """
    if fabric is None:
        return {
            "gateway": service.gateway,
            "service": service.name,
            "is_mesh": False,
            **_bounded("nodes", [_lone(service)], limit),
            **_bounded("links", [], limit),
            **_bounded("targets", [], limit),
            "counts": _counts(TrafficCounts()),
            "not_linked": {},
        }
    name = namer(service, fabric)
    nodes = [_node(fabric, member, name, service.now_ns) for member in fabric.members]
    nodes.sort(key=_nearness)
    links = [_link(fabric, link, name(link.number)) for link in fabric.links.values()]
    return {
        "gateway": service.gateway,
        "service": service.name,
        "is_mesh": True,
        **_bounded("nodes", nodes, limit),
        **_bounded("links", sorted(links, key=_name), limit),
        **_bounded("targets", _unreached(fabric, service.now_ns), limit),
        "counts": _counts(fabric.traffic.counts),
        "not_linked": dict(fabric.events.not_linked),
    }


def interest_facts(service: Service, fabric: "MeshNode | None", limit: int) -> Facts:
    """Report the interest sets of all known gateways, including this one."""
    if fabric is None:
        wanted, more = _local_interest(service, limit)
        return {"interest": wanted, "more_interest": more}
    name = namer(service, fabric)
    wanted = []
    more = 0
    for member in fabric.members:
        all_of_it = [each for each in member.wanted.sorted() if each != FOR_ITSELF]
        found = all_of_it[: max(0, limit - len(wanted))]
        wanted += [
            {
                "gateway": name(member.number),
                "pattern": each.pattern.decode(),
                "group": each.group.decode(),
                "listen_only": each.is_listener,
            }
            for each in found
        ]
        more += len(all_of_it) - len(found)
    return {"interest": wanted, "more_interest": more}


def listener_facts(
    service: Service, fabric: "MeshNode | None", subject: bytes, limit: int
) -> Facts:
    """Report the subscribers of a subject: local connections, and remote gateways by pattern.

    Raises:
        BadSubject: invalid subject.
        Reserved: subject of the system.
    """
    route = route_to(service, subject)
    name = namer(service, fabric)
    here, more = service.router.listeners(subject, False, limit)
    there, more_there = service.router.listeners(subject, True, limit)
    return {
        "subject": subject.decode(),
        "gateway": service.gateway,
        "listeners": [
            {
                "connection": heard.connection,
                "name": heard.name,
                "pattern": heard.pattern,
                "group": heard.group,
                "policy": heard.policy,
                "listen_only": heard.is_listener,
                "is_behind": heard.is_behind,
            }
            for heard in (heard_by(listener, route) for listener in here)
        ],
        "more": more,
        "gateways": [
            {
                "number": outbox.owner.number,
                "name": name(outbox.owner.number),
                "pattern": wanted.pattern.decode(),
                "group": wanted.group.decode(),
                "listen_only": wanted.is_listener,
                "hops": _hops(fabric, outbox.owner.number),
            }
            for outbox, wanted in there
        ],
        "more_gateways": more_there,
    }


def namer(service: Service, fabric: "MeshNode | None") -> Name:
    """Return a function from gateway number to display name, with the number if ambiguous."""
    names = {service.stamp.origin: service.gateway}
    if fabric is not None:
        names |= {member.number: member.advert.name for member in fabric.members}
    counts = Counter(names.values())

    def name(number: int) -> str:
        known = names.get(number, "")
        if not known:
            return f"{number:08x}"
        return known if counts[known] == 1 else f"{known} {number:08x}"

    return name


def _bounded(name: str, rows: list[Facts], limit: int) -> Facts:
    return {name: rows[:limit], f"more_{name}": max(0, len(rows) - limit)}


def _node(fabric: "MeshNode", member: "Member", name: Name, now_ns: int) -> Facts:
    advert = member.advert
    own = fabric.members.own
    parents = fabric.survey.parents
    way = _way(parents, own.number, member.number)
    return {
        "number": member.number,
        "name": name(member.number),
        "node": member.node.hex(),
        "address": advert.address,
        "region": advert.region,
        "state": state_of(fabric, member),
        "hops": len(way),
        # First gateway on the path, and the last one before the destination.
        "through": name(way[0]) if way else "",
        "by": name(parents[member.number]) if way else "",
        "lost_s": (now_ns - member.lost_ns) / _S if member.lost_ns else 0.0,
        "patterns": len(member.wanted) - (FOR_ITSELF in member.wanted),
        "is_current": member.is_current,
        "is_coarse": advert.is_coarse,
        "incarnation": advert.incarnation,
        "links": [name(number) for number in advert.links],
        "room": advert.room,
        "load": advert.load,
        # The last advert of a lost gateway is out of date.
        "is_draining": advert.is_draining and (member.is_there or member is own),
    }


def state_of(fabric: "MeshNode", member: "Member") -> str:
    """Return the state of a gateway, seen from this one."""
    if member is fabric.members.own:
        return "here"
    if member.advert.is_leaving:
        # Its leaving advert comes last; only its links may still be open.
        is_near = any(link.node == member.node for link in mesh_links(fabric.links))
        return "leaving" if is_near else "left"
    if member.lost_ns:
        # A new link has no path until the routes are recomputed.
        is_met = any(link.node == member.node for link in mesh_links(fabric.links))
        return "linking" if is_met else "lost"
    return "linked" if fabric.survey.parents.get(member.number) == _own(fabric) else "reached"


def _lone(service: Service) -> Facts:
    wanted, more = _local_interest(service, 0)
    return {
        "number": service.stamp.origin,
        "name": service.gateway,
        "node": "",
        "address": "",
        "region": "",
        "state": "here",
        "hops": 0,
        "through": "",
        "by": "",
        "lost_s": 0.0,
        "patterns": len(wanted) + more,
        "is_current": True,
        "is_coarse": False,
        "incarnation": 0,
        "links": [],
        "room": 0,
        "load": step_of(weight_of(service)),
        "is_draining": False,
    }


def _local_interest(service: Service, limit: int) -> tuple[list[Facts], int]:
    """Return the distinct subscriptions of local connections, and the number left out."""
    router = service.router
    found = dict.fromkeys(
        (each.pattern, each.group, each.is_listener)
        for peer in service.peers.values()
        for each in router.subscriptions(peer.outbox)
    )
    listed = [
        {
            "gateway": service.gateway,
            "pattern": pattern.decode(),
            "group": group.decode(),
            "listen_only": is_listener,
        }
        for pattern, group, is_listener in sorted(found)[:limit]
    ]
    return listed, len(found) - len(listed)


def _link(fabric: "MeshNode", link: Link, name: str) -> Facts:
    outbox = link.peer.outbox
    now_ns = link.peer.service.now_ns
    member = fabric.members.get(link.node)
    # The remote port of an accepted link cannot be dialled.
    address = link.address or ("" if member is None else member.advert.address)
    return {
        "number": link.number,
        "name": link.peer.name if link.is_registration else name,
        "node": link.node.hex(),
        "address": address,
        "is_dialled": link.is_dialled,
        "is_registration": link.is_registration,
        "state": _link_state(link),
        "since_s": (now_ns - link.since_ns) / _S,
        "rtt_ms": link.rtt_ns / _MS,
        "silent_s": link.silent_ns(now_ns) / _S,
        "waiting_bytes": outbox.cost() + outbox.pending,
        "limit_bytes": outbox.bounds.drop_bytes,
    }


def _link_state(link: Link) -> str:
    if link.peer.is_over:
        return "ending"
    if link.is_registration:
        return "registered"
    return "ready" if link.is_ready else "syncing"


def _unreached(fabric: "MeshNode", now_ns: int) -> list[Facts]:
    links = [link for link in mesh_links(fabric.links) if link.is_ready]
    linked = {link.node for link in links}
    # Whichever side dialled: the address belongs to a linked gateway.
    reached = {address for link in links for address in (link.address, link.advertised)}
    return [
        _target(target, now_ns)
        for target in sorted(fabric.dialling.targets, key=_address)
        if target.problem
        and not target.is_self
        and target.node not in linked
        and target.address not in reached
        and not (target.next_ns < now_ns - _STALE_NS and fabric.dialling.is_there(target, linked))
    ]


def _target(target: DialTarget, now_ns: int) -> Facts:
    return {
        "address": target.address,
        "problem": target.problem,
        "is_configured": target.is_fixed,
        "is_registry": target.is_registry,
        "is_dialling": target.is_dialling,
        "next_s": max(0.0, (target.next_ns - now_ns) / _S),
    }


def _counts(counts: TrafficCounts) -> Facts:
    return {**{name: getattr(counts, name) for name in _COUNTS}, "refused": dict(counts.refused)}


def _hops(fabric: "MeshNode | None", number: int) -> int:
    return 0 if fabric is None else hops(fabric.survey.parents, _own(fabric), number)


def _way(parents: dict[int, int], own: int, number: int) -> list[int]:
    """Return the gateways on the path to one, including it; empty without a path."""
    way: list[int] = []
    while number != own:
        way.append(number)
        if number not in parents or len(way) > len(parents):
            return []
        number = parents[number]
    way.reverse()
    return way


def _own(fabric: "MeshNode") -> int:
    return fabric.members.own.number


def _nearness(node: Facts) -> tuple[int, int, str]:
    """Order: this gateway, reachable ones by hops, unreachable ones."""
    order = ("here", "linked", "reached", "linking", "leaving", "left", "lost")
    return order.index(node["state"]), node["hops"], node["name"]


def _name(row: Facts) -> str:
    name: str = row["name"]
    return name


def _address(target: DialTarget) -> str:
    return target.address
