"""End of a connection: remove its subscriptions, requests, aliases and memberships."""

from weft.broker.auth.key_connections import leave_holder
from weft.broker.auth.runtime_grants import disable_all
from weft.broker.ingest import drop_large
from weft.broker.replies import TEXT_MAX
from weft.broker.reply_aliases import forget_masks
from weft.broker.requests import forget_requests
from weft.broker.service import INBOX_BYTES, NOWHERE, Peer, Service
from weft.broker.system_events import announce_peer
from weft.errors import WeftError

# Ended connections whose error is kept for their client.
ENDED_MAX = 1024


def withdraw_ended(service: Service) -> list[Peer]:
    """Withdraw the peers that ended since the last call; their transports are not yet notified."""
    ended = service.ending.copy()
    service.ending.clear()
    for peer in ended:
        withdraw(peer)
    return ended


def withdraw(peer: Peer) -> None:
    """Remove all routes to a peer that ended; only queued frames are still sent to it."""
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
    """Keep the error of a connection for its client's next one: it may not have been read."""
    ended = peer.service.ended_why
    # Not the error itself: its traceback would keep frames alive.
    ended[peer.inbox[:INBOX_BYTES]] = error.number, str(error)[:TEXT_MAX]
    if len(ended) > ENDED_MAX:
        ended.popitem(last=False)


def leave(peer: Peer) -> None:
    """Remove a peer from its service; its transport is closed, or about to be."""
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
    # Break reference cycles: a busy service rarely runs the garbage collector.
    peer.outbox.close()
    peer.door = None
    peer.route = NOWHERE
