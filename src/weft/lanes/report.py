"""Report of a service's routes: state, reason and traffic of each."""

from heapq import nlargest
from typing import Any

from weft.broker.metering import PublisherTraffic
from weft.broker.service import Peer
from weft.lanes.coordinator import LaneCoordinator, flow_of
from weft.lanes.route_state import LaneRoute, RouteState

Facts = dict[str, Any]

_OF_SYSTEM = (b"_INBOX", b"_WEFT")
# Relayed share of a direct route from which the reason mentions it.
_MUCH = 0.1


def lane_counts(lanes: LaneCoordinator) -> Facts:
    """Counters: lanes, direct routes, promotions and demotions."""
    talk = lanes.talk
    return {
        "lanes": len(talk.pairs),
        "routes_direct": talk.routes.direct(),
        "promotions": talk.promotions,
        "demotions": dict(talk.demotions),
    }


def route_facts(
    lanes: LaneCoordinator, limit: int, subject: bytes | None = None, connection: int | None = None
) -> Facts:
    """The known routes, live ones first, then by rate."""
    found: dict[tuple[int, bytes], tuple[Peer, bytes, PublisherTraffic | None]] = {}
    for route in lanes.talk.routes:
        found[route.key] = route.publisher, route.subject, flow_of(route.publisher, route.subject)
    for peer in lanes.service.peers.values():
        if peer.meter is not None and peer.is_greeted and peer.carrier is None:
            for name, flow in peer.meter.flows().items():
                if name not in _OF_SYSTEM:
                    found.setdefault((peer.number, name), (peer, name, flow))
    wanted = [
        _row(lanes, *row)
        for row in found.values()
        if (subject is None or row[1] == subject)
        and (connection is None or row[0].number == connection)
    ]
    listed = nlargest(limit, wanted, key=_prominence)
    return {"routes": listed, "more": len(wanted) - len(listed)}


def _prominence(row: Facts) -> tuple[bool, float]:
    return row["state"] != RouteState.RELAYED, row["byte_rate"]


def _row(
    lanes: LaneCoordinator, peer: Peer, subject: bytes, flow: PublisherTraffic | None
) -> Facts:
    service = lanes.service
    route = lanes.talk.routes.get(peer.number, subject)
    since_ns = peer.joined_ns
    if route is not None:
        since_ns = route.since_ns
    elif flow is not None:
        # Flows use the monotonic clock; reports give wall-clock time.
        since_ns = flow.first_ns + service.wall_ns - service.now_ns
    return {
        "subject": subject.decode(),
        "connection": peer.number,
        "name": peer.name,
        "state": str(RouteState.RELAYED if route is None else route.state),
        "reason": _reason(lanes, peer, subject, flow),
        "since_ns": since_ns,
        "receivers": [] if route is None else _receivers(route),
        "message_rate": 0.0 if flow is None else flow.message_rate(service.now_ns),
        "byte_rate": 0.0 if flow is None else flow.byte_rate(service.now_ns),
        "direct_messages": 0 if route is None else route.messages,
        "direct_bytes": 0 if route is None else route.bytes,
    }


def _reason(
    lanes: LaneCoordinator, peer: Peer, subject: bytes, flow: PublisherTraffic | None
) -> str:
    route = lanes.talk.routes.get(peer.number, subject)
    if route is None or not route.reason:
        return lanes.why_relayed(peer, subject, flow)
    if route.state is RouteState.DIRECT and flow is not None:
        share = route.relayed_share(flow.messages)
        if share > _MUCH:
            return f"{route.reason}; {share:.0%} relayed, in order with other subjects"
    return route.reason


def _receivers(route: LaneRoute) -> list[str]:
    return [each.peer.name for each in route.receivers.values()]
