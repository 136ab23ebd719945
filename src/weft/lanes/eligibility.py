"""Who would have to get a subject by lanes, or why that cannot be."""

from weft.broker.auth.permissions import PUBLISH, REQUEST
from weft.broker.delivery.policy import Policy
from weft.broker.routing.route import Route
from weft.broker.service import Peer
from weft.wire.subjects import CHANNEL, is_reserved

_LOCAL = b"_LOCAL."


def may_publish(peer: Peer, subject: bytes) -> bool:
    """Say if a peer may publish to a legal subject that is in no channel."""
    if is_reserved(subject) and not subject.startswith(_LOCAL):
        return False
    return peer.rights is None or peer.rights.allows(PUBLISH, subject)


def may_request(peer: Peer, subject: bytes) -> bool:
    """Say if a peer that may publish to a subject may ask for answers there, too."""
    return peer.rights is None or peer.rights.allows(REQUEST, subject)


def audience(publisher: Peer, route: Route, limit: int) -> list[Peer] | str:
    """Everybody who is to get what one peer publishes; or why no lanes lead there."""
    problem = _not_plain(route)
    if problem:
        return problem
    count = len(route.outboxes)
    if count > limit:
        return f"{count} receivers, at most {limit}"
    if not count:
        return "nobody subscribes to it"
    problem = _no_publisher(publisher, route)
    if problem:
        return problem
    found: list[Peer] = []
    for outbox, policy in zip(route.outboxes, route.policies, strict=True):
        peer: Peer | None = outbox.owner
        if peer is None or not peer.lanes:
            return f"receiver {'of this gateway' if peer is None else peer.name} takes no lanes"
        if policy != Policy.CUT:
            # Only a gateway can drop what one receiver is too slow for, and spare the others.
            return f"receiver {peer.name} has the policy {Policy(policy).name.lower()}"
        found.append(peer)
    return found


def _not_plain(route: Route) -> str:
    """What keeps a route at the gateway, whoever its receivers are; or empty."""
    if route.subject.startswith(CHANNEL):
        return "in a channel"
    if route.is_journaled:
        return "journaled"
    if route.groups or route.far_groups:
        return "a queue group wants it"
    if route.is_far:
        return "wanted at other gateways"
    return ""


def _no_publisher(publisher: Peer, route: Route) -> str:
    """Why one peer cannot bring it to its receivers by itself; or empty."""
    if publisher.outbox in route.outboxes:
        return "the publisher subscribes to it itself"
    if not may_publish(publisher, route.subject):
        return "the publisher may not publish to it"
    return "" if publisher.lanes else "the publisher takes no lanes"
