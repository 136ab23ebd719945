"""The end of a connection: whatever led to it or waited for it is withdrawn."""

from weft.broker.auth.key_connections import leave_holder
from weft.broker.auth.runtime_grants import disable_all
from weft.broker.ingest import drop_large
from weft.broker.replies import TEXT_MAX
from weft.broker.reply_aliases import forget_masks
from weft.broker.requests import forget_requests
from weft.broker.service import INBOX_BYTES, NOWHERE, Peer, Service
from weft.broker.system_events import announce_peer
from weft.errors import WeftError

# How many ended connections the reason is kept of.
ENDED_MAX = 1024


def withdraw_ended(service: Service) -> list[Peer]:
    """Withdraw those that are over since the last call; their doors have yet to be told."""
    ended = service.ending.copy()
    service.ending.clear()
    for peer in ended:
        withdraw(peer)
    return ended


def withdraw(peer: Peer) -> None:
    """Let nothing more lead to a peer that is over: it gets what it is owed already, no more."""
    service = peer.service
    if service.inboxes.pop(peer.inbox, None) is None:
        return
    if peer.carrier is not None:
        peer.carrier.part()
    elif peer.error is not None and peer.is_greeted:
        _remember_why(peer, peer.error)
    service.router.leave(peer.outbox)
    if service.laning is not None:
        service.laning.part(peer)
    if peer.channels and service.on_member_over is not None:
        service.on_member_over(peer)
    disable_all(peer)
    forget_requests(peer)
    forget_masks(peer)
    drop_large(peer)


def _remember_why(peer: Peer, error: WeftError) -> None:
    """Keep why it ended for when its client comes back: it may never have read that."""
    ended = peer.service.ended_why
    # Not the error itself: its traceback keeps what it was raised in.
    ended[peer.inbox[:INBOX_BYTES]] = error.number, str(error)[:TEXT_MAX]
    if len(ended) > ENDED_MAX:
        ended.popitem(last=False)


def leave(peer: Peer) -> None:
    """Remove a peer from its service; its door is closed already, or about to be."""
    service = peer.service
    if service.peers.pop(peer.number, None) is None:
        return
    withdraw(peer)
    leave_holder(peer)
    if peer.meter is not None:
        service.flow_count -= len(peer.meter)
    reason = "left" if peer.error is None else type(peer.error).__name__
    service.count_ended(reason)
    if peer.is_greeted and peer.carrier is None:
        announce_peer(peer, "disconnected", reason=reason)
    peer.end(None)
    # Cycles of objects would wait for the collector, which a busy service rarely runs.
    peer.outbox.close()
    peer.door = None
    peer.route = NOWHERE
