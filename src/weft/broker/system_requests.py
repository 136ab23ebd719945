"""System requests: answers to requests on `_WEFT.ask.` subjects.

Status and lists are for services and admins, not for clients. Subscriptions can be listed by
connection and by subject, and so can the traffic of each connection to each subject. `limit` bounds
the lists; `more` counts the entries left out.
"""

from collections.abc import Callable
from heapq import nlargest
from typing import Any

from weft.broker.auth.runtime_grants import disable, enable
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Reason
from weft.broker.metering import PublisherTraffic
from weft.broker.rate_limit import spend
from weft.broker.replies import told
from weft.broker.routing.route import Group
from weft.broker.routing.router import ListedSubscription
from weft.broker.service import Desk, Peer, Service, is_insider
from weft.errors import (
    BadOption,
    NotAllowed,
    NotKnown,
    Overloaded,
    Refused,
    UsageError,
    WeftError,
    shortened,
)
from weft.wire.byteops import cut, u32_at
from weft.wire.frames import Kind, stamp_frame
from weft.wire.message.message import Message

LIMIT = 100
LIMIT_MAX = 1000

# A peer with more queued bytes than this gets no answers.
UNREAD_MAX_BYTES = 1 << 20

_LOOKS_PER_CREDIT = 16
_LOOKS_PER_CHANGE = 256
# Cost of a listed entry, in frames.
_CREDIT_PER_ENTRY = 4
_CREDIT_PER_PAGE = 16
_OF_JOURNALS = ("history", "stage", "release", "discard")

Facts = dict[str, Any]


def answer_ask(peer: Peer, question: bytes, reply: bytes, at: int) -> WeftError | None:
    """Answer the request at an offset of the arena; return the error, or None.

    Raises:
        ProtocolError: the body is not a message, or the peer is over its rate limit.
    """
    data = peer.service.arena.data
    service = peer.service
    name = question.decode()
    answer = _ANSWERS.get(name)
    if answer is None and name not in service.desks:
        if name in _OF_JOURNALS:
            return NotKnown(f"service {service.name!r} keeps no journal")
        known = ", ".join(dict.fromkeys([*_ANSWERS, *_OF_JOURNALS, *service.desks]))
        return NotKnown(f"{shortened(name)} is none of {known}")
    if name in _FACTS and not is_insider(peer):
        return NotAllowed(f"a client may not ask for {name}")
    unread = peer.outbox.owed()
    if peer.outbox.is_cut or unread > UNREAD_MAX_BYTES:
        return Overloaded(f"{unread} bytes were not read yet, over {UNREAD_MAX_BYTES}")
    if answer is None:
        return _ask_desk(peer, service.desks[name], reply, at)
    request = Message.from_frame(cut(data, at, at + u32_at(data, at)))
    if name in _FACTS:
        # Most answers scan every connection, some every flow.
        spend(peer, (len(service.peers) + service.flow_count) // _LOOKS_PER_CREDIT + 1)
    else:
        # All changes of a turn cause one scan of every connection.
        spend(peer, len(service.peers) // _LOOKS_PER_CHANGE + 1)
    try:
        facts = answer(peer, request)
    except (UsageError, Refused) as error:
        return error
    entries = sum(len(value) for value in facts.values() if isinstance(value, list))
    spend(peer, _CREDIT_PER_ENTRY * entries)
    frame = bytearray(told(peer, Kind.MESSAGE, reply, b"", Message.from_dict(facts)))
    if len(frame) > service.run.body_limit:
        return BadOption(f"an answer of {len(frame)} bytes is too long: set a lower limit")
    stamp_frame(data, at, service.stamp)
    service.stamp.publisher = 0
    stamp_frame(frame, 0, service.stamp)
    service.stamp.publisher = peer.number & 0xFFFFFFFF
    peer.owe(bytes(frame))
    return None


def _ask_desk(peer: Peer, desk: Desk, reply: bytes, at: int) -> WeftError | None:
    """Pass a request to the handler that answers it later."""
    service = peer.service
    data = service.arena.data
    request = Message.from_frame(cut(data, at, at + u32_at(data, at)))
    spend(peer, _CREDIT_PER_PAGE)
    try:
        problem = desk(peer, reply, request)
    except (UsageError, Refused) as error:
        return error
    if problem is None:
        stamp_frame(data, at, service.stamp)
    return problem


def status_facts(service: Service) -> Facts:
    """The status of a service: counters and rates."""
    behind = [peer.outbox for peer in service.peers.values() if peer.outbox.is_behind()]
    return {
        "service": service.name,
        "connections": sum([peer.carrier is None for peer in service.peers.values()]),
        "subscriptions": len(service.router),
        "messages_in": service.total.messages,
        "bytes_in": service.total.bytes,
        "deliveries": service.deliveries,
        "bytes_out": service.bytes_out,
        "message_rate": service.total.message_rate(service.now_ns),
        "byte_rate": service.total.byte_rate(service.now_ns),
        "dropped": _dropped(service),
        "refused": dict(service.refused),
        "ended": dict(service.ended),
        "slow_readers": len(behind),
        "backlog_bytes": sum(outbox.cost() for outbox in behind),
        "arena_bytes": 2 * service.arena.size,
    }


def _dropped(service: Service) -> dict[str, int]:
    return {reason.name.lower(): service.dropped[reason] for reason in Reason}


def _status(peer: Peer, _request: Message) -> Facts:
    return status_facts(peer.service)


def _connections(peer: Peer, request: Message) -> Facts:
    service = peer.service
    peers = _peers(service, request)
    busiest = nlargest(_limit(request), peers, key=_prominence)
    return {
        "connections": [_connection_facts(each) for each in busiest],
        "more": len(peers) - len(busiest),
    }


def _subscriptions(peer: Peer, request: Message) -> Facts:
    service = peer.service
    limit = _limit(request)
    router = service.router
    listed: list[Facts] = []
    more = 0
    for each in _peers(service, request):
        count = router.count(each.outbox)
        room = limit - len(listed)
        # There may be a million: scan no more than are listed.
        if count and room:
            found = router.subscriptions(each.outbox, room)
            listed += [_subscription_facts(each, subscription) for subscription in found]
        more += max(0, count - room)
    return {"subscriptions": listed, "more": more}


def _subscribers(peer: Peer, request: Message) -> Facts:
    service = peer.service
    subject = request.get_string("subject")
    limit = _limit(request)
    route = service.router.route(subject.encode())
    if route is None:
        raise BadOption(f"subject {shortened(subject)} is not a legal subject")
    found = _members(route.outboxes, route.groups)
    far = _members(route.far, route.far_groups)
    return {
        "subscribers": [_subscriber_facts(outbox, name) for outbox, name in found[:limit]],
        "more": max(0, len(found) - limit),
        "gateways": [_gateway_facts(outbox, name) for outbox, name in far[:limit]],
    }


def _members(outboxes: list[Outbox], groups: list[Group]) -> list[tuple[Outbox, str]]:
    """Outboxes of plain subscribers and of group members, each with the name of its group."""
    # Without an owner: subscriptions of this process itself.
    found = [(outbox, "") for outbox in outboxes if outbox.owner is not None]
    for group in groups:
        name = group.name.decode()
        found += [(outbox, name) for outbox in group.members]
    return found


def _flows(peer: Peer, request: Message) -> Facts:
    service = peer.service
    wanted = request.get_string("subject").encode() if "subject" in request else None
    found = [
        (flow.byte_rate(service.now_ns), each.number, subject, flow)
        for each in _peers(service, request)
        if each.meter is not None
        for subject, flow in each.meter.flows().items()
        if wanted is None or subject == wanted
    ]
    busiest = nlargest(_limit(request), found, key=_first)
    return {
        "flows": [
            _flow_facts(service, service.peers[number], subject, flow)
            for _, number, subject, flow in busiest
        ],
        "more": len(found) - len(busiest),
    }


def _enable(peer: Peer, request: Message) -> Facts:
    enable(peer, request)
    return {}


def _disable(peer: Peer, request: Message) -> Facts:
    disable(peer, request)
    return {}


# Gets peer and request; returns the fields of the answer.
Answer = Callable[[Peer, Message], Facts]

_FACTS: dict[str, Answer] = {
    "status": _status,
    "connections": _connections,
    "subscriptions": _subscriptions,
    "subscribers": _subscribers,
    "flows": _flows,
}
_ANSWERS: dict[str, Answer] = {**_FACTS, "enable": _enable, "disable": _disable}


def _peers(service: Service, request: Message) -> list[Peer]:
    """The connections that a request selects: by number, by name, or all."""
    if "connection" in request:
        peer = service.peers.get(request.get_int64("connection"))
        return [peer] if peer is not None and _is_listed(peer) else []
    name = request.get_string("name") if "name" in request else None
    return [
        peer
        for peer in service.peers.values()
        if _is_listed(peer) and (name is None or peer.name == name)
    ]


def _is_listed(peer: Peer) -> bool:
    """Return whether a peer is listed: it is greeted and not a gateway."""
    return peer.is_greeted and peer.carrier is None


def _limit(request: Message) -> int:
    limit = request.get_int64("limit") if "limit" in request else LIMIT
    if not 1 <= limit <= LIMIT_MAX:
        raise BadOption(f"limit {limit} is not in 1 … {LIMIT_MAX}")
    return limit


def _prominence(peer: Peer) -> tuple[bool, float]:
    """Sort key of connections: slow consumers first, then by rate."""
    rate = 0.0 if peer.meter is None else peer.meter.byte_rate(peer.service.now_ns)
    return peer.outbox.is_behind(), rate


def _first(row: tuple[float, int, bytes, PublisherTraffic]) -> float:
    return row[0]


def _connection_facts(peer: Peer) -> Facts:
    service = peer.service
    meter = peer.meter
    total = PublisherTraffic(service.now_ns) if meter is None else meter.total()
    return {
        "number": peer.number,
        "name": peer.name,
        "address": peer.address,
        "client": peer.client,
        "key": "" if peer.key is None else peer.key.name,
        "role": "" if peer.key is None else peer.key.role,
        "connected_ns": peer.joined_ns,
        "subscriptions": service.router.count(peer.outbox),
        "messages": total.messages,
        "bytes": total.bytes,
        "message_rate": 0.0 if meter is None else meter.message_rate(service.now_ns),
        "byte_rate": 0.0 if meter is None else meter.byte_rate(service.now_ns),
        "owed_bytes": peer.outbox.owed(),
        "dropped": peer.outbox.dropped(),
        "is_behind": peer.outbox.is_behind(),
        "unanswered": peer.outbox.busy,
    }


def _subscription_facts(peer: Peer, subscription: ListedSubscription) -> Facts:
    return {
        "connection": peer.number,
        "name": peer.name,
        "pattern": subscription.pattern.decode(),
        "group": subscription.group.decode(),
        "policy": subscription.policy.name.lower(),
        "listen_only": subscription.is_listener,
    }


def _subscriber_facts(outbox: Outbox, group: str) -> Facts:
    peer = outbox.owner
    return {"connection": peer.number, "name": peer.name, "group": group}


def _gateway_facts(outbox: Outbox, group: str) -> Facts:
    peer = outbox.owner
    return {"number": peer.number, "name": peer.name, "group": group}


def _flow_facts(service: Service, peer: Peer, subject: bytes, flow: PublisherTraffic) -> Facts:
    # Flows use the monotonic clock; answers give wall-clock time.
    shift_ns = service.wall_ns - service.now_ns
    return {
        "connection": peer.number,
        "name": peer.name,
        "subject": subject.decode(),
        "messages": flow.messages,
        "bytes": flow.bytes,
        "message_rate": flow.message_rate(service.now_ns),
        "byte_rate": flow.byte_rate(service.now_ns),
        "first_ns": flow.first_ns + shift_ns,
        "last_ns": flow.last_ns + shift_ns,
    }
