"""Handle inbound MESSAGE frames: authorize, stamp, route, deliver.

Runs of plain messages take the fast path: one look-up per run. Frames that request an OK, carry a
reply subject or go to a reserved name are handled one by one.
"""

from weft.broker.auth.permissions import PUBLISH, REQUEST, Rights, may_not
from weft.broker.channel_subjects import plain_name
from weft.broker.delivery.backpressure import hold_for_link, hold_publisher
from weft.broker.journal.acks import acknowledge_when_safe, keep, why_not_kept
from weft.broker.metering import Meter
from weft.broker.replies import acknowledge, refuse
from weft.broker.reply_aliases import (
    begin_mask,
    end_mask,
    no_room,
    put_copy,
    share_identity,
    too_many_masks,
)
from weft.broker.requests import give_request, is_own_inbox, take_reply
from weft.broker.service import NOWHERE, Awaited, Peer
from weft.broker.system_requests import answer_ask
from weft.errors import BadSubject, NotAMember, NotYours, Reserved, UsageError, WeftError
from weft.wire.byteops import cut, same_bytes, u32_at
from weft.wire.frames import HEADER_BYTES, RESERVED_FLAGS, Flag, Run, stamp_frame
from weft.wire.subjects import CHANNEL, is_reserved, is_subject

_HEADER = HEADER_BYTES
_ANSWER = int(Flag.ANSWER)
_REQUEST = int(Flag.REQUEST)
_NOT_BACK = int(Flag.NOT_BACK)
_MASKED = int(Flag.MASKED)
_RESERVED = RESERVED_FLAGS
_FAILED = int(Flag.FAILED)
_ONE_BY_ONE = _ANSWER | _REQUEST | _FAILED | _RESERVED
_MAY_PUBLISH = PUBLISH
_MAY_REQUEST = REQUEST
_NOWHERE = NOWHERE
_INBOX = b"_INBOX."
_LOCAL = b"_LOCAL."
_CHANNEL = CHANNEL
_OPEN = (_LOCAL, _CHANNEL)
_ASK = b"_WEFT.ask."


def publish(peer: Peer, run: Run) -> None:
    """Handle a run of messages from a greeted peer."""
    service = peer.service
    data = service.arena.data
    length = run.subject_length
    if (
        peer.route.is_stale
        or peer.flow.is_folded
        or length != len(peer.subject)
        or not same_bytes(data, run.start + _HEADER, peer.subject, 0, length)
    ):
        problem = _resolve(peer, run.subject(data), run.flags)
        if problem is not None:
            _refuse_run(peer, run, problem)
            return
    size = run.end - run.start
    service.stamp.publisher = peer.number & 0xFFFFFFFF
    service.stamp.time_ns = service.wall_ns
    peer.flow.record(run.count, size, service.now_ns)
    service.total.record(run.count, size, service.now_ns)
    if peer.is_one_by_one or run.has_reply or run.flags & _ONE_BY_ONE:
        _publish_each(peer, run)
        return
    run.stamp(data, service.stamp)
    is_not_back = run.flags & _NOT_BACK != 0
    route = peer.route
    if route.is_journaled:
        keep(peer, run.start, run.end, run.count)
    receivers = route.deliver_to_each(run.start, run.end, peer.outbox, is_not_back)
    service.deliveries += receivers * run.count
    if route.groups:
        service.deliveries += route.deliver_in_turn(run.start, run.end, peer.outbox, is_not_back)
    if service.budget.crowded or route.is_full:
        hold_publisher(peer)
    if route.is_far and service.beyond is not None:
        link = service.beyond.spread(route, run.start, run.end, run.count)
        if link is not None:
            hold_for_link(peer, link)


def _resolve(peer: Peer, subject: bytes, flags: int) -> WeftError | None:
    """Look up route, permissions and meter of a subject; return the error, or None.

    A reserved subject has no cached route: its receivers depend on more than the subject.
    """
    service = peer.service
    peer.subject = subject
    peer.route = _NOWHERE
    peer.may_publish = True
    peer.may_request = True
    if is_reserved(subject) and not subject.startswith(_OPEN):
        if not is_subject(subject):
            return BadSubject(f"a subject of {len(subject)} bytes is not legal")
        peer.is_system_subject = True
        peer.is_one_by_one = True
        metered = b"_INBOX" if subject.startswith(_INBOX) else b"_WEFT"
    else:
        # Before the route: a subject without permission must not cost a look-up.
        name = subject
        if is_reserved(subject) and subject.startswith(_CHANNEL):
            name = plain_name(peer, subject)
            if not name:
                return _no_member()
        rights = peer.rights
        if rights is not None:
            problem = _find_rights(peer, rights, name, flags)
            if problem is not None:
                return problem
        route = service.router.route(subject)
        if route is None:
            return BadSubject(f"a subject of {len(subject)} bytes is not legal")
        peer.is_system_subject = False
        peer.is_one_by_one = not peer.may_publish
        peer.route = route
        metered = subject
    meter = peer.meter
    if meter is None:
        meter = Meter(service.now_ns, service.limits.flows_per_connection)
        peer.meter = meter
    before = len(meter)
    if service.flow_count < service.limits.flows or meter.has(metered):
        peer.flow = meter.flow(metered, service.now_ns)
    else:
        peer.flow = meter.others
    service.flow_count += len(meter) - before
    return None


def _find_rights(peer: Peer, rights: Rights, name: bytes, flags: int) -> WeftError | None:
    """Look up the permissions for the peer's subject; return an error if it may not do this.

    `name` is the subject that permissions apply to: in a channel it starts with the channel's name.
    """
    if not is_subject(peer.subject):
        return BadSubject(f"a subject of {len(peer.subject)} bytes is not legal")
    peer.may_publish = rights.allows(_MAY_PUBLISH, name)
    peer.may_request = rights.allows(_MAY_REQUEST, name)
    return _not_allowed(peer, flags)


def _no_member() -> WeftError:
    return NotAMember("this connection has not joined such a channel")


def _not_allowed(peer: Peer, flags: int) -> WeftError | None:
    """Return the error if a peer may not send a message with these flags to its subject."""
    if flags & _REQUEST:
        return None if peer.may_request else may_not("request", peer.subject)
    return None if peer.may_publish else may_not("publish to", peer.subject)


def reserved_flags(flags: int) -> WeftError:
    """The error of a message with flags that only a gateway may set."""
    return UsageError(f"flags {flags & _RESERVED:#x} of a message are reserved")


def _refuse_run(peer: Peer, run: Run, problem: WeftError) -> None:
    data = peer.service.arena.data
    at = run.start
    while at < run.end:
        _refuse_one(peer, at, problem, at > run.start)
        at += u32_at(data, at)


def _refuse_one(peer: Peer, at: int, problem: WeftError, is_told: bool) -> None:
    """Refuse a frame; of a run without requested OKs, only the first error is sent."""
    if is_told and not peer.service.arena.data[at + 5] & (_ANSWER | _REQUEST):
        peer.service.count_refused(type(problem).__name__)
    else:
        refuse(peer, at, problem)


def _publish_each(peer: Peer, run: Run) -> None:
    if run.flags & _RESERVED:
        _refuse_run(peer, run, reserved_flags(run.flags))
        return
    if run.flags & _FAILED and not peer.is_system_subject:
        # In a journal this bit marks a message that entered at another gateway.
        _refuse_run(peer, run, UsageError("the flag 0x20, failed, is for answers in an inbox"))
        return
    data = peer.service.arena.data
    at = run.start
    is_told = False
    while at < run.end:
        names = at + _HEADER + run.subject_length
        reply = cut(data, names, names + data[at + 7])
        problem = wrong_reply(peer, reply) if reply else None
        if problem is None:
            if reply and run.flags & _MASKED:
                problem = _publish_masked(peer, at, run.flags, reply)
            else:
                problem = _publish_one(peer, at, run.flags, reply)
        if problem is not None:
            _refuse_one(peer, at, problem, is_told)
            is_told = True
        elif run.flags & _ANSWER:
            if peer.route.is_journaled and not run.flags & _REQUEST:
                acknowledge_when_safe(peer, at)
            else:
                acknowledge(peer, at)
        at += u32_at(data, at)


def _publish_one(peer: Peer, at: int, flags: int, reply: bytes) -> WeftError | None:
    if flags & _REQUEST and not is_own_inbox(peer, reply):
        return UsageError("a request needs a reply subject in the requester's inbox")
    if peer.is_system_subject:
        if peer.subject.startswith(_INBOX):
            return take_reply(peer, at)
        if flags & _REQUEST and peer.subject.startswith(_ASK):
            return answer_ask(peer, peer.subject[len(_ASK) :], reply, at)
        return Reserved(f"subject {peer.subject.decode()!r} belongs to the system")
    problem = _not_allowed(peer, flags)
    if problem is not None:
        return problem
    if flags & _REQUEST:
        return give_request(peer, at, reply)
    return _publish_to_all(peer, at, flags)


def _publish_to_all(peer: Peer, at: int, flags: int) -> WeftError | None:
    service = peer.service
    data = service.arena.data
    route = peer.route
    is_journaled = route.is_journaled
    if is_journaled and flags & _ANSWER:
        # Before delivery: the publisher will retry.
        problem = why_not_kept(service)
        if problem is not None:
            return problem
    stamp_frame(data, at, service.stamp)
    is_not_back = flags & _NOT_BACK != 0
    size = u32_at(data, at)
    if is_journaled:
        keep(peer, at, at + size, 1)
    service.deliveries += route.deliver(at, at + size, peer.outbox, is_not_back)
    if service.budget.crowded or route.is_full:
        hold_publisher(peer)
    if route.is_far and service.beyond is not None:
        link = service.beyond.spread(route, at, at + size, 1)
        if link is not None:
            hold_for_link(peer, link)
    return None


def _publish_masked(peer: Peer, at: int, flags: int, reply: bytes) -> WeftError | None:
    """Publish a copy with a reply alias, and without the number of the publisher."""
    service = peer.service
    if peer.subject.startswith(_ASK):
        # The gateway answers it, and knows the requester.
        return _publish_one(peer, at, flags, reply)
    if reply.startswith(_CHANNEL):
        return UsageError("a reply subject in a channel is not masked: its members know each other")
    problem = too_many_masks(peer)
    if problem is not None:
        return problem
    stand_in = begin_mask(peer, reply)
    copy = put_copy(service, at, peer.subject, stand_in)
    if copy < 0:
        end_mask(peer, stand_in)
        return no_room()
    service.stamp.publisher = 0
    problem = _publish_one(peer, copy, flags, reply)
    service.stamp.publisher = peer.number & 0xFFFFFFFF
    if problem is not None:
        end_mask(peer, stand_in)
        return problem
    share_identity(service.arena.data, at, copy)
    if flags & _REQUEST and not peer.is_system_subject:
        awaited: Awaited = peer.asking[reply]
        awaited.stand_in = stand_in
    return None


def wrong_reply(peer: Peer, reply: bytes) -> WeftError | None:
    """Return why a reply subject is invalid: its sender must be allowed to publish to it."""
    if not is_subject(reply):
        return BadSubject(f"a reply subject of {len(reply)} bytes is not legal")
    if is_own_inbox(peer, reply):
        return None
    if not is_reserved(reply) or reply.startswith(_OPEN):
        name = plain_name(peer, reply) if reply.startswith(_CHANNEL) else reply
        if not name:
            return _no_member()
        if peer.rights is None or peer.rights.allows(_MAY_PUBLISH, name):
            return None
        return may_not("have replies sent to", reply)
    return NotYours("a reply subject must lie in its sender's inbox")
