"""Pending requests: requester and responder of each.

A request is delivered to one responder, and only that one can answer it. If the responder leaves,
the requester is sent an error; if the requester leaves, the responder no longer counts as busy.
Either may be a remote gateway: frames that it forwards were stamped where they entered.
"""

from weft.broker.delivery.chunk import KEPT_COST_BYTES
from weft.broker.delivery.policy import Policy
from weft.broker.replies import error_frame
from weft.broker.reply_aliases import end_mask, no_room, publish_answer, put_answer, share_identity
from weft.broker.service import (
    FAR_INBOX_BYTES,
    INBOX_BYTES,
    NO_REQUESTS,
    Awaited,
    Mask,
    Peer,
    Service,
)
from weft.errors import (
    NotKnown,
    NotYours,
    Overloaded,
    ResponderGone,
    TooMany,
    UsageError,
    WeftError,
)
from weft.wire.byteops import cut, u32_at
from weft.wire.frames import HEADER_BYTES, Flag, Kind, encode, stamp_frame

_INBOX_BYTES = INBOX_BYTES + 1
_FAR_INBOX_BYTES = FAR_INBOX_BYTES
_HEADER = HEADER_BYTES
_CUT = int(Policy.CUT)
_DROP_NEW = int(Policy.DROP_NEW)
_ERROR = int(Kind.ERROR)
_REQUEST = int(Flag.REQUEST)
_REFUSED = (int(Kind.MESSAGE), int(Flag.REQUEST))
_NOT_BACK = int(Flag.NOT_BACK)
_KEPT_COST = KEPT_COST_BYTES


def is_own_inbox(peer: Peer, subject: bytes) -> bool:
    """Return whether a subject lies in the inbox of this peer."""
    return subject.startswith(peer.inbox)


def give_request(peer: Peer, at: int, reply: bytes) -> WeftError | None:
    """Deliver the request at an offset of the arena to the least busy responder of its subject."""
    service = peer.service
    count = len(peer.asking)
    if count >= service.requests_each:
        return TooMany(f"{count} requests wait for their answers, which is the limit")
    holder = peer.holder
    if holder is not None and holder.requests >= service.requests_share:
        return TooMany(
            f"{holder.requests} requests of all connections with this key wait for their answers,"
            " which is its share: see limits.share"
        )
    return _give(peer, at, reply, True)


def pass_request(peer: Peer, at: int, reply: bytes) -> WeftError | None:
    """Deliver a request that a remote gateway forwarded to the least busy responder here."""
    return _give(peer, at, reply, False)


def _give(peer: Peer, at: int, reply: bytes, is_new: bool) -> WeftError | None:
    service = peer.service
    data = service.arena.data
    asking = peer.asking
    if reply in asking:
        return UsageError("another request waits for an answer to the same reply subject")
    if service.requests >= service.requests_total:
        return Overloaded(
            f"{service.requests} requests of this service wait for their answers, which is the"
            " limit: see limits.requests_total"
        )
    outbox = peer.route.responder(peer.outbox, data[at + 5] & _NOT_BACK != 0, service.request_turn)
    if outbox is None or (outbox.is_distant and not is_new):
        return NotKnown(f"no responder for {peer.subject.decode()!r}")
    size = u32_at(data, at)
    taken = outbox.cost() + outbox.pending
    if taken > 0 and taken + size + _KEPT_COST > outbox.bounds.drop_bytes:
        # A request is never dropped: another one would only disconnect the responder.
        return Overloaded(f"the responders for {peer.subject.decode()!r} have full queues")
    service.request_turn += 1
    responder: Peer = outbox.owner
    awaited = Awaited(peer, responder, peer.subject, service.now_ns)
    if asking is NO_REQUESTS:
        asking = {}
        peer.asking = asking
    asking[reply] = awaited
    if responder.serving is NO_REQUESTS:
        responder.serving = {}
    responder.serving[reply] = awaited
    service.requests += 1
    if peer.holder is not None:
        peer.holder.requests += 1
    outbox.busy += 1
    service.deliveries += 1
    if is_new:
        stamp_frame(data, at, service.stamp)
    outbox.push(at, size, _CUT)
    return None


def take_reply(peer: Peer, at: int) -> WeftError | None:
    """Deliver the reply at an offset of the arena to the owner of its inbox.

    A reply to an alias is copied, and goes to the reply subject that the alias stands for. A reply
    to an owner that left is no error: the requester no longer waits. A message that answers no
    pending request is dropped if the owner is behind, so that a sender cannot get it disconnected.
    """
    return _take(peer, at, True)


def pass_reply(peer: Peer, at: int) -> WeftError | None:
    """Deliver a reply that a remote gateway forwarded to an inbox here; see take_reply()."""
    return _take(peer, at, False)


def _take(peer: Peer, at: int, is_new: bool) -> WeftError | None:
    service = peer.service
    data = service.arena.data
    reply = peer.subject
    mask: Mask | None = None
    owner = _owner(service, reply)
    if owner is None:
        mask = service.masks.get(reply)
        if mask is not None:
            owner, reply = mask.owner, mask.reply
            if not is_own_inbox(owner, reply):
                return publish_answer(peer, at, mask)
        elif is_new:
            owner = service.inboxes.get(reply[:_FAR_INBOX_BYTES])
    if owner is None:
        return _to_nobody(service, at, is_new)
    awaited = owner.asking.get(reply)
    if awaited is not None and awaited.responder is not peer:
        return NotYours("this request was given to another connection to answer")
    start = at if mask is None else put_answer(service, at, mask)
    if start < 0:
        return no_room()
    _identify(service, at, start, is_new)
    policy = _DROP_NEW
    if awaited is not None:
        policy = _CUT
        _settle(reply, awaited)
    owner.outbox.push(start, u32_at(data, start), policy)
    service.deliveries += 1
    return None


def _identify(service: Service, at: int, start: int, is_new: bool) -> None:
    """Stamp a new frame; a copy and its original get the same identity."""
    data = service.arena.data
    if is_new:
        stamp_frame(data, start, service.stamp)
        if start != at:
            share_identity(data, at, start)
    elif start != at:
        share_identity(data, start, at)


def _owner(service: Service, reply: bytes) -> Peer | None:
    """The peer whose inbox a reply subject lies in."""
    address = reply[:_INBOX_BYTES]
    if len(address) == _INBOX_BYTES - 1:
        # The inbox itself, without a subject in it.
        address += b"."
    return service.inboxes.get(address)


def _to_nobody(service: Service, at: int, is_new: bool) -> WeftError | None:
    if service.arena.data[at + 5] & _REQUEST:
        return NotKnown("the owner of this inbox is gone")
    if is_new:
        stamp_frame(service.arena.data, at, service.stamp)
    return None


def pass_refusal(peer: Peer, at: int) -> None:
    """Fail a pending request that a remote gateway could not have answered."""
    data = peer.service.arena.data
    names = at + _HEADER + data[at + 6]
    body = names + data[at + 7]
    told = cut(data, names, body)
    reply = _unmasked(peer.service, told)
    awaited = peer.serving.get(reply)
    if awaited is None:
        return
    requester = awaited.requester
    size = u32_at(data, at)
    _settle(reply, awaited)
    if reply == told and names > at + _HEADER:
        requester.outbox.push(at, size, _CUT)
    else:
        # It names the alias, or no subject: the gateway that refused it does not know them.
        error = cut(data, body, at + size)
        requester.owe(encode(_ERROR, awaited.subject, error, reply, data[at + 5]))


def refuse_request(peer: Peer, given: bytes, problem: WeftError) -> None:
    """Fail the pending request that a peer was given with this reply subject."""
    reply = _unmasked(peer.service, given)
    awaited = peer.serving.get(reply)
    if awaited is not None:
        _refuse(reply, awaited, problem)


def forget_requests(peer: Peer) -> None:
    """Fail the requests that a leaving peer was to answer, and drop its own."""
    for reply, awaited in list(peer.asking.items()):
        _settle(reply, awaited)
    for reply, awaited in list(peer.serving.items()):
        gone = ResponderGone(f"{peer.name or 'the responder'} left before it answered")
        _refuse(reply, awaited, gone)


def expire_requests(peer: Peer, oldest_ns: int) -> None:
    """Drop the pending requests that a peer sent before a time."""
    for reply, awaited in list(peer.asking.items()):
        if awaited.time_ns >= oldest_ns:
            return
        _settle(reply, awaited)


def _unmasked(service: Service, given: bytes) -> bytes:
    """The reply subject behind an alias; any other reply subject itself."""
    mask = service.masks.get(given)
    return given if mask is None else mask.reply


def _refuse(reply: bytes, awaited: Awaited, problem: WeftError) -> None:
    requester = awaited.requester
    _settle(reply, awaited)
    requester.owe(error_frame(requester, awaited.subject, reply, _REFUSED, problem))


def _settle(reply: bytes, awaited: Awaited) -> None:
    requester = awaited.requester
    requester.service.requests -= 1
    if requester.holder is not None:
        requester.holder.requests -= 1
    del requester.asking[reply]
    del awaited.responder.serving[reply]
    awaited.responder.outbox.busy -= 1
    if awaited.stand_in:
        end_mask(requester, awaited.stand_in)
