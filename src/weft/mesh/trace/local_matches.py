"""Who listens to a subject at one gateway, and who would get the next message of a group.

Looking changes nothing: no turn is taken, and nobody is told.
"""

from typing import NamedTuple

from weft.broker.delivery.outbox import Outbox
from weft.broker.routing.route import Group, Route
from weft.broker.routing.router import Listener
from weft.broker.service import Peer, Service
from weft.errors import BadSubject, Reserved, shortened
from weft.mesh.protocol import HEARD_MAX, Heard
from weft.wire.subjects import is_reserved

_LOCAL = b"_LOCAL."


class Share(NamedTuple):
    """A queue group and the gateway that gets its next message; `name` is a connection there."""

    group: str
    gateway: int
    name: str = ""


class Listening(NamedTuple):
    """What one gateway does with a message to a subject.

    `gateways` are those others that are sent it, of groups the one whose turn it is. `responder` is
    who would be given a request: a connection here, or `responds_at`, another gateway. `is_kept`
    says if the journal keeps it.
    """

    heard: tuple[Heard, ...]
    more: int
    shares: tuple[Share, ...]
    gateways: tuple[int, ...]
    responder: str
    responds_at: int
    is_kept: bool


def route_to(service: Service, subject: bytes) -> Route:
    """Where messages to a subject go.

    Raises:
        BadSubject: it is none.
        Reserved: it belongs to the system.
    """
    shown = shortened(subject.decode(errors="replace"))
    if is_reserved(subject) and not subject.startswith(_LOCAL):
        raise Reserved(f"subject {shown} belongs to the system")
    route = service.router.route(subject)
    if route is None:
        raise BadSubject(f"subject {shown} is not a legal subject")
    return route


def listening(service: Service, subject: bytes, asker: Peer | None = None) -> Listening:
    """What this gateway does with a message to a subject; with a request, if it is the asker's.

    Raises:
        BadSubject: it is none.
        Reserved: it belongs to the system.
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
    # Whoever asks is asked itself only if nobody else is there.
    sender = Outbox(service.arena, service.bounds) if asker is None else asker.outbox
    responder = route.responder(sender, False, service.request_turn)
    responds_at, name = 0, ""
    if responder is not None and responder.is_distant:
        responds_at = responder.owner.number
        gateways[responds_at] = None
    elif responder is not None:
        responds_at, name = own, responder.owner.name
    return Listening(
        heard=heard,
        more=more,
        shares=tuple(shares),
        gateways=tuple(gateways),
        responder=name,
        responds_at=responds_at,
        is_kept=route.is_journaled,
    )


def heard_by(listener: Listener, route: Route) -> Heard:
    """A subscription, and whether its group's next message is for it."""
    outbox, subscription = listener
    turns = {group.name: group.members[group.turn()] for group in route.groups}
    return Heard(
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
    """The gateway whose turn it is, of those that there is a way to if there are any."""
    count = len(group.members)
    first = group.turn()
    for step in range(count):
        outbox: Outbox = group.members[(first + step) % count]
        if not outbox.is_away:
            break
    return outbox
