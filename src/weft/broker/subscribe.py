"""SUBSCRIBE and UNSUBSCRIBE: several patterns at once, all or none."""

from typing import NamedTuple

from weft.broker.auth.permissions import SERVE, SUBSCRIBE, may_not
from weft.broker.channel_subjects import plain_name
from weft.broker.delivery.policy import Policy
from weft.broker.rate_limit import spend
from weft.broker.requests import is_own_inbox
from weft.broker.service import Peer, is_insider
from weft.errors import BadOption, BadSubject, NotAMember, NotYours, Reserved, TooMany, shortened
from weft.wire.frames import Frame
from weft.wire.message.message import Message
from weft.wire.subjects import (
    CHANNEL,
    elements,
    is_literal,
    is_pattern,
    is_reserved,
    is_subject,
)

GROUP_MAX_BYTES = 127

_POLICIES = {policy.name.lower(): policy for policy in Policy}
_WEFT = b"_WEFT."
_OPEN_TO_ALL = (b"_LOCAL.", _WEFT, CHANNEL)


class SubscribeRequest(NamedTuple):
    """Patterns and options of one SUBSCRIBE or UNSUBSCRIBE frame."""

    patterns: list[bytes]
    group: bytes
    policy: Policy
    is_listener: bool


def subscribe(peer: Peer, frame: Frame) -> None:
    """Add the subscriptions that a frame names, or change their options.

    Raises:
        UsageError: invalid pattern, group or option.
        Refused: a pattern is reserved, another's or not allowed, or over the limit.
    """
    wish = _read(peer, frame)
    router = peer.service.router
    weight = peer.weight
    for pattern in wish.patterns:
        _check_allowed(peer, pattern)
        if not router.has(peer.outbox, pattern, wish.group):
            weight += weight_of(pattern)
    limit = peer.service.limits.subscriptions
    if weight > limit and weight > peer.weight:
        raise TooMany(f"subscriptions of weight {weight} are over the limit of {limit}")
    for pattern in wish.patterns:
        is_listener = wish.is_listener or not may_serve(peer, pattern)
        router.subscribe(peer.outbox, pattern, wish.group, wish.policy, is_listener)
    peer.weight = weight


def unsubscribe(peer: Peer, frame: Frame) -> None:
    """Remove the subscriptions that a frame names.

    Raises:
        UsageError: invalid pattern, group or option.
    """
    wish = _read(peer, frame)
    for pattern in wish.patterns:
        if peer.service.router.unsubscribe(peer.outbox, pattern, wish.group):
            peer.weight -= weight_of(pattern)


def may_subscribe(peer: Peer, pattern: bytes) -> bool:
    """Return whether a peer may subscribe to a valid pattern; `_WEFT.` is not for clients."""
    rights = peer.rights
    name = _name_for_rights(peer, pattern)
    if rights is None or not name:
        return bool(name)
    if pattern.startswith(_WEFT):
        return is_insider(peer) and not rights.denies(SUBSCRIBE, pattern)
    return rights.allows(SUBSCRIBE, name)


def may_serve(peer: Peer, pattern: bytes) -> bool:
    """Return whether a peer may be given requests to a valid pattern."""
    return peer.rights is None or peer.rights.allows(SERVE, _name_for_rights(peer, pattern))


def weight_of(pattern: bytes) -> int:
    """The weight of a subscription: 1, or the number of elements if it has wildcards."""
    return 1 if is_literal(pattern) else len(elements(pattern))


def _read(peer: Peer, frame: Frame) -> SubscribeRequest:
    options = Message.from_body(frame.body) if frame.body else Message()
    more = options.get_list("patterns") if "patterns" in options else []
    # The frame itself is charged already.
    spend(peer, len(more))
    patterns = _patterns(frame.subject, more)
    group = frame.reply
    if group and (len(group) > GROUP_MAX_BYTES or not is_subject(group)):
        raise BadSubject(f"queue group {_shown(group)} is not a legal name")
    name = options.get_string("policy") if "policy" in options else "cut"
    if name not in _POLICIES:
        raise BadOption(f"policy {shortened(name)} is none of {', '.join(_POLICIES)}")
    is_listener = options.get_bool("listen_only") if "listen_only" in options else False
    # Messages to an inbox reach its owner without a subscription.
    wanted = [pattern for pattern in patterns if not is_own_inbox(peer, pattern)]
    return SubscribeRequest(wanted, group, _POLICIES[name], is_listener)


def _patterns(first: bytes, more: list[object]) -> list[bytes]:
    """All patterns of one frame, without duplicates."""
    patterns = dict.fromkeys([first] if first else [])
    for pattern in more:
        if not isinstance(pattern, str):
            raise BadOption(f"patterns are strings, not {type(pattern).__name__}")
        patterns[pattern.encode()] = None
    if not patterns:
        raise BadSubject("no pattern given")
    for named in patterns:
        if not is_pattern(named):
            raise BadSubject(f"{_shown(named)} is not a legal pattern")
    return list(patterns)


def _check_allowed(peer: Peer, pattern: bytes) -> None:
    if pattern.startswith(CHANNEL) and not plain_name(peer, pattern):
        raise NotAMember("this connection has not joined such a channel")
    if not is_reserved(pattern) or pattern.startswith(_OPEN_TO_ALL):
        if may_subscribe(peer, pattern):
            return
        raise may_not("subscribe to", pattern)
    if pattern.startswith(b"_INBOX."):
        raise NotYours("only its owner receives an inbox")
    raise Reserved(f"{_shown(pattern)} belongs to the system")


def _name_for_rights(peer: Peer, pattern: bytes) -> bytes:
    """The pattern as permissions name it: in a channel it starts with the channel's name."""
    return plain_name(peer, pattern) if pattern.startswith(CHANNEL) else pattern


def _shown(name: bytes) -> str:
    return shortened(name.decode(errors="replace"))
