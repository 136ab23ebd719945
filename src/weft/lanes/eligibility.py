"""Eligibility of a route for lanes: its receivers, or the reason why it stays relayed."""

from weft.broker.auth.permissions import PUBLISH, REQUEST
from weft.broker.delivery.policy import Policy
from weft.broker.routing.route import Route
from weft.broker.service import Peer
from weft.wire.subjects import CHANNEL, is_reserved

_LOCAL = b"_LOCAL."


def may_publish(peer: Peer, subject: bytes) -> bool:
    """Return whether a peer may publish to a valid subject outside channels."""
    if is_reserved(subject) and not subject.startswith(_LOCAL):
        return False
    return peer.rights is None or peer.rights.allows(PUBLISH, subject)


def may_request(peer: Peer, subject: bytes) -> bool:
    """Return whether a peer that may publish to a subject may send requests to it, too."""
    return peer.rights is None or peer.rights.allows(REQUEST, subject)


def audience(publisher: Peer, route: Route, limit: int) -> list[Peer] | str:
    """The receivers of a publisher's route, or the reason why lanes are impossible."""
    problem = _not_plain(route)
    if problem:
        return problem
    count = len(route.outboxes)
    if count > limit:
        return f"{count} receivers, at most {limit}"
    if not count:
        return "no subscribers"
    problem = _no_publisher(publisher, route)
    if problem:
        return problem
    found: list[Peer] = []
    for outbox, policy in zip(route.outboxes, route.policies, strict=True):
        peer: Peer | None = outbox.owner
        if peer is None or not peer.lanes:
            return (
                f"receiver {'of this gateway' if peer is None else peer.name} does not accept lanes"
            )
        if policy != Policy.CUT:
            # Only a gateway can drop messages of one slow receiver and spare the others.
            return f"receiver {peer.name} has the policy {Policy(policy).name.lower()}"
        found.append(peer)
    return found


def _not_plain(route: Route) -> str:
    """The reason why no publisher can use lanes for a route, or empty."""
    if route.subject.startswith(CHANNEL):
        return "in a channel"
    if route.is_journaled:
        return "journaled"
    if route.groups or route.far_groups:
        return "has a queue group"
    if route.is_far:
        return "subscribed at other gateways"
    return ""


def _no_publisher(publisher: Peer, route: Route) -> str:
    """The reason why this publisher cannot use lanes for a route, or empty."""
    if publisher.outbox in route.outboxes:
        return "the publisher subscribes to it itself"
    if not may_publish(publisher, route.subject):
        return "the publisher may not publish to it"
    return "" if publisher.lanes else "the publisher does not accept lanes"
