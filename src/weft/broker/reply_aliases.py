"""Reply aliases: substitutes for reply subjects, which hide the requester from the responder.

An alias has the form of an inbox subject, but is unguessable and does not reveal its owner. It
leads to the reply subject until its owner leaves, it expires, or its request is answered.
"""

from hashlib import blake2b

from weft.broker.auth.permissions import PUBLISH
from weft.broker.journal.acks import keep
from weft.broker.service import NO_MASKS, Mask, Peer, Service
from weft.errors import Overloaded, TooMany, UsageError, WeftError
from weft.wire.byteops import cut, put_bytes, put_u32, u32_at
from weft.wire.frames import HEADER_BYTES, Flag, stamp_frame

# As many as the inbox of a connection: two digits each.
_DIGEST_BYTES = 12
_HEADER = HEADER_BYTES
# Offset of origin, publisher, sequence and time in a header.
_IDENTITY = 8
_REQUEST = int(Flag.REQUEST)
_NOT_BACK = int(Flag.NOT_BACK)
_ALL_BUT_MASKED = 0xFF & ~int(Flag.MASKED)
_MAY_PUBLISH = PUBLISH


def begin_mask(peer: Peer, reply: bytes) -> bytes:
    """Create an alias for a reply subject of a peer, one for each message."""
    service = peer.service
    service.masks_made += 1
    made = service.masks_made.to_bytes(8, "little")
    digits = blake2b(made, digest_size=_DIGEST_BYTES, key=service.secret).hexdigest()
    stand_in = f"_INBOX.{service.stamp.origin:08x}.{digits}.r".encode()
    mask = Mask(peer, reply, service.now_ns)
    if peer.masks is NO_MASKS:
        peer.masks = {}
    peer.masks[stand_in] = mask
    if peer.holder is not None:
        peer.holder.masks += 1
    service.masks[stand_in] = mask
    return stand_in


def too_many_masks(peer: Peer) -> WeftError | None:
    """Return the error if a peer may have no further alias, else None."""
    service = peer.service
    count = len(peer.masks)
    if count >= service.requests_each:
        return TooMany(f"{count} reply subjects are masked, which is the limit")
    holder = peer.holder
    if holder is not None and holder.masks >= service.requests_share:
        return TooMany(
            f"{holder.masks} reply subjects of all connections with this key are masked, which is"
            " its share: see limits.share"
        )
    count = len(service.masks)
    if count >= service.requests_total:
        return Overloaded(
            f"{count} reply subjects of this service are masked, which is the limit: see"
            " limits.requests_total"
        )
    return None


def end_mask(peer: Peer, stand_in: bytes) -> None:
    """Remove an alias of a peer; does nothing if it is gone already."""
    if peer.masks.pop(stand_in, None) is not None:
        del peer.service.masks[stand_in]
        if peer.holder is not None:
            peer.holder.masks -= 1


def forget_masks(peer: Peer) -> None:
    """Remove all aliases of a peer that leaves."""
    for stand_in in peer.masks:
        del peer.service.masks[stand_in]
    if peer.holder is not None:
        peer.holder.masks -= len(peer.masks)
    peer.masks = NO_MASKS


def expire_masks(peer: Peer, oldest_ns: int) -> None:
    """Remove the aliases of a peer that were created before a time."""
    old: list[bytes] = []
    for stand_in, mask in peer.masks.items():
        if mask.time_ns >= oldest_ns:
            break
        old.append(stand_in)
    for stand_in in old:
        end_mask(peer, stand_in)


def put_copy(service: Service, at: int, subject: bytes, reply: bytes) -> int:
    """Copy a frame within the arena with other names, to be stamped.

    Returns the offset of the copy, or -1 if the arena is full.
    """
    arena = service.arena
    data = arena.data
    subject_length = len(subject)
    reply_length = len(reply)
    body = at + _HEADER + data[at + 6] + data[at + 7]
    body_length = at + u32_at(data, at) - body
    size = _HEADER + subject_length + reply_length + body_length
    start = arena.reserve(size)
    if start < 0:
        return start
    put_u32(data, start, size)
    data[start + 4] = data[at + 4]
    # The alias is in place: later gateways must not replace it again.
    data[start + 5] = data[at + 5] & _ALL_BUT_MASKED
    data[start + 6] = subject_length
    data[start + 7] = reply_length
    names = start + _HEADER
    put_bytes(data, names, subject, 0, subject_length)
    put_bytes(data, names + subject_length, reply, 0, reply_length)
    put_bytes(data, names + subject_length + reply_length, data, body, body_length)
    return start


def put_answer(service: Service, at: int, mask: Mask) -> int:
    """Copy a reply within the arena, addressed to the reply subject that its alias stands for."""
    data = service.arena.data
    names = at + _HEADER + data[at + 6]
    return put_copy(service, at, mask.reply, cut(data, names, names + data[at + 7]))


def share_identity(data: bytearray, at: int, copy: int) -> None:
    """Give a frame the identity of its copy, which its publisher's OK reports."""
    put_bytes(data, at + _IDENTITY, data, copy + _IDENTITY, _HEADER - _IDENTITY)


def no_room() -> WeftError:
    """The error if the arena has no room for a copy."""
    return Overloaded("there is no room for another copy of this message at the moment")


def publish_answer(peer: Peer, at: int, mask: Mask) -> WeftError | None:
    """Publish a reply to a reply subject outside any inbox; return the error, or None.

    The permission is that of the alias' owner, which may have lost it since.
    """
    service = peer.service
    data = service.arena.data
    flags = data[at + 5]
    if flags & _REQUEST:
        return UsageError("a reply alias takes answers, not requests")
    rights = mask.owner.rights
    route = service.router.route(mask.reply)
    if route is None or (rights is not None and not rights.allows(_MAY_PUBLISH, mask.reply)):
        stamp_frame(data, at, service.stamp)
        return None
    start = put_answer(service, at, mask)
    if start < 0:
        return no_room()
    stamp_frame(data, start, service.stamp)
    share_identity(data, at, start)
    end = start + u32_at(data, start)
    if route.is_journaled:
        keep(peer, start, end, 1)
    service.deliveries += route.deliver(start, end, peer.outbox, flags & _NOT_BACK != 0)
    if route.is_far and service.beyond is not None:
        service.beyond.spread(route, start, end, 1)
    return None
