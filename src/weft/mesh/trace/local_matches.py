"""Matches of a subject at one gateway: its subscribers, and the next member of each group.

Read-only: no group advances, and no subscriber is notified.
"""

from typing import NamedTuple

from weft.broker.delivery.outbox import Outbox
from weft.broker.routing.route import Group, Route
from weft.broker.routing.router import MatchingSubscriber
from weft.broker.service import Peer, Service
from weft.errors import BadSubject, Reserved, shortened
from weft.mesh.protocol import HEARD_MAX, MatchingSubscription
from weft.wire.subjects import is_reserved

_LOCAL = b"_LOCAL."


class Share(NamedTuple):
    """Queue group and the gateway that gets its next message; `name` is a connection there."""

    group: str
    gateway: int
    name: str = ""


class LocalMatches(NamedTuple):
    """Result of routing a subject at one gateway.

    `gateways` are the remote receivers, for groups the next one. `responder` is the connection here
    that would get a request, `responds_at` the gateway that would. `is_kept` tells if the journal
    stores the subject.
    """

    heard: tuple[MatchingSubscription, ...]
    more: int
    shares: tuple[Share, ...]
    gateways: tuple[int, ...]
    responder: str
    responds_at: int
    is_kept: bool


def route_to(service: Service, subject: bytes) -> Route:
    """Return the route of a subject.

    Raises:
        BadSubject: invalid subject.
        Reserved: subject of the system.
    """
    shown = shortened(subject.decode(errors="replace"))
    if is_reserved(subject) and not subject.startswith(_LOCAL):
        raise Reserved(f"subject {shown} belongs to the system")
    route = service.router.route(subject)
    if route is None:
        raise BadSubject(f"subject {shown} is invalid")
    return route


def listening(service: Service, subject: bytes, asker: Peer | None = None) -> LocalMatches:
    """Return the matches of a subject; `asker` is the requester if it is a request.

    Raises:
        BadSubject: invalid subject.
        Reserved: subject of the system.
    """
    route = route_to(service, subject)
    own = service.stamp.origin
    found, more = service.router.listeners(subject, False, HEARD_MAX)
    heard = tuple(heard_by(listener, route) for listener in found)
    shares = [
        Share(group.name.decode(), own, group.members[group.turn()].owner.name)
        for group in route.groups
    ]
    shares += [
        Share(group.name.decode(), next_of(group).owner.number) for group in route.far_groups
    ]
    gateways = dict.fromkeys(outbox.owner.number for outbox in route.far)
    gateways |= dict.fromkeys(share.gateway for share in shares if share.gateway != own)
    # A requester answers itself only without another responder.
    sender = Outbox(service.arena, service.bounds) if asker is None else asker.outbox
    responder = route.responder(sender, False, service.request_turn)
    responds_at, name = 0, ""
    if responder is not None and responder.is_distant:
        responds_at = responder.owner.number
        gateways[responds_at] = None
    elif responder is not None:
        responds_at, name = own, responder.owner.name
    return LocalMatches(
        heard=heard,
        more=more,
        shares=tuple(shares),
        gateways=tuple(gateways),
        responder=name,
        responds_at=responds_at,
        is_kept=route.is_journaled,
    )


def heard_by(listener: MatchingSubscriber, route: Route) -> MatchingSubscription:
    """Return a subscription, and whether it gets the next message of its group."""
    outbox, subscription = listener
    turns = {group.name: group.members[group.turn()] for group in route.groups}
    return MatchingSubscription(
        name=outbox.owner.name,
        connection=outbox.owner.number,
        pattern=subscription.pattern.decode(),
        group=subscription.group.decode(),
        policy=subscription.policy.name.lower(),
        is_listener=subscription.is_listener,
        is_behind=outbox.is_behind(),
        is_next=turns.get(subscription.group) is outbox,
    )


def next_of(group: Group) -> Outbox:
    """Return the next gateway of a group, a reachable one if possible."""
    count = len(group.members)
    first = group.turn()
    for step in range(count):
        outbox: Outbox = group.members[(first + step) % count]
        if not outbox.is_away:
            break
    return outbox
