"""Permissions that services grant to clients while they run, until they revoke them or leave.

A service can grant only its own permissions, and requests on subjects that it serves: a restricted
key cannot hand out more than it has.
"""

from weft.broker.auth.permissions import ENABLED_RIGHTS, REQUEST, SERVE, may_not
from weft.broker.service import NOTHING_ENABLED, Peer, is_insider
from weft.errors import BadOption, NotAllowed, Reserved, TooMany, shortened
from weft.wire.message.message import Message
from weft.wire.subjects import checked_pattern, is_reserved

_LOCAL = b"_LOCAL."


def enable(peer: Peer, request: Message) -> None:
    """Grant a permission to clients, until this peer revokes it or leaves.

    Raises:
        UsageError: unknown right or invalid pattern.
        Refused: sent by a client, over the limit, or not the peer's to grant.
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
    """Revoke a grant of this peer; an unknown grant is no error.

    Raises:
        UsageError: unknown right or invalid pattern.
        Refused: sent by a client.
    """
    right, pattern = _asked(peer, request)
    if (right, pattern) in peer.enabling:
        _disable(peer, right, pattern)


def disable_unjustified(peer: Peer) -> None:
    """Revoke the grants of a peer that its current permissions do not cover."""
    for right, pattern in list(peer.enabling):
        if not (is_insider(peer) and _may_give(peer, right, pattern)):
            _disable(peer, right, pattern)


def disable_all(peer: Peer) -> None:
    """Revoke all grants of a peer that leaves."""
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
