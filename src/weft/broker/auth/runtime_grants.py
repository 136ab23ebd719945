"""Rights that services give clients while they run, and take back, or take with them.

A service enables no more than it may do itself, or serves: a key with few rights cannot hand out
more than it has.
"""

from weft.broker.auth.permissions import ENABLED_RIGHTS, REQUEST, SERVE, may_not
from weft.broker.service import NOTHING_ENABLED, Peer, is_insider
from weft.errors import BadOption, NotAllowed, Reserved, TooMany, shortened
from weft.wire.message.message import Message
from weft.wire.subjects import checked_pattern, is_reserved

_LOCAL = b"_LOCAL."


def enable(peer: Peer, request: Message) -> None:
    """Let clients do something, for as long as this peer is here and does not disable it.

    Raises:
        UsageError: there is no such right, or the pattern is not legal.
        Refused: a client asks, or there would be too many, or it is not the peer's to give.
    """
    right, pattern = _asked(peer, request)
    if (right, pattern) in peer.enabling:
        return
    if is_reserved(pattern) and not pattern.startswith(_LOCAL):
        raise Reserved(f"{shortened(pattern.decode())} belongs to the system")
    if not _may_give(peer, right, pattern):
        raise may_not(f"enable to {ENABLED_RIGHTS[right]}", pattern)
    service = peer.service
    if len(peer.enabling) >= service.limits.enabled:
        raise TooMany(f"{len(peer.enabling)} rights are enabled, which is the limit")
    peer.enabling = peer.enabling | {(right, pattern)}
    if service.enabled.hold(right, pattern, peer.number):
        service.is_review_due = True


def disable(peer: Peer, request: Message) -> None:
    """Take back what this peer has enabled; what it has not is no error.

    Raises:
        UsageError: there is no such right, or the pattern is not legal.
        Refused: a client asks.
    """
    right, pattern = _asked(peer, request)
    if (right, pattern) in peer.enabling:
        _disable(peer, right, pattern)


def disable_unjustified(peer: Peer) -> None:
    """Take back what a peer has enabled and, by its rights as they are now, may not give."""
    for right, pattern in list(peer.enabling):
        if not (is_insider(peer) and _may_give(peer, right, pattern)):
            _disable(peer, right, pattern)


def disable_all(peer: Peer) -> None:
    """Take back everything that a peer has enabled: it leaves."""
    for right, pattern in peer.enabling:
        _let_go(peer, right, pattern)
    peer.enabling = NOTHING_ENABLED


def _disable(peer: Peer, right: int, pattern: bytes) -> None:
    peer.enabling = peer.enabling - {(right, pattern)} or NOTHING_ENABLED
    _let_go(peer, right, pattern)


def _let_go(peer: Peer, right: int, pattern: bytes) -> None:
    service = peer.service
    if service.enabled.let_go(right, pattern, peer.number):
        service.is_review_due = True
        service.is_right_lost = True


def _asked(peer: Peer, request: Message) -> tuple[int, bytes]:
    if not is_insider(peer):
        raise NotAllowed("a client may not enable or disable rights: services do")
    name = request.get_string("right")
    if name not in ENABLED_RIGHTS:
        raise BadOption(f"right {shortened(name)} is none of {', '.join(ENABLED_RIGHTS)}")
    return ENABLED_RIGHTS.index(name), checked_pattern(request.get_string("pattern"))


def _may_give(peer: Peer, right: int, pattern: bytes) -> bool:
    rights = peer.rights
    if rights is None or rights.allows(right, pattern):
        return True
    return right == REQUEST and rights.allows(SERVE, pattern)
