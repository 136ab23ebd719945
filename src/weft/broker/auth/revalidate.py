"""Check connected peers again after a change of keys or permissions.

Runs at the end of a turn, once for all its changes. A peer whose key is no longer accepted is
disconnected; others stay connected and lose the subscriptions that they may no longer have.
"""

from weft.broker.auth.permissions import may_not
from weft.broker.auth.runtime_grants import disable_unjustified
from weft.broker.handshake import admit, no_key, not_accepted
from weft.broker.replies import end_with, error_frame
from weft.broker.service import NOWHERE, Peer, Service
from weft.broker.subscribe import may_serve, may_subscribe, weight_of
from weft.wire.frames import Kind

_REFUSED = (int(Kind.SUBSCRIBE), 0)


def review(service: Service) -> None:
    """Check every peer after a change of permissions."""
    # Gateways are authenticated without a key.
    greeted = [
        peer
        for peer in service.peers.values()
        if peer.is_greeted and not peer.is_over and peer.carrier is None
    ]
    staying = [peer for peer in greeted if review_key(peer)]
    if service.is_right_lost:
        # Before the clients that depend on these grants.
        for peer in staying:
            disable_unjustified(peer)
    is_right_lost = service.is_right_lost
    service.is_review_due = False
    service.is_right_lost = False
    for peer in staying:
        if peer.rights is None:
            continue
        # Its next message looks the route up again, and with it the permissions.
        peer.route = NOWHERE
        if is_right_lost:
            _review_subscriptions(peer)
    if service.laning is not None:
        service.laning.look_at_rights()


def review_key(peer: Peer) -> bool:
    """Update the permissions of a peer from its key; if that is invalid now, end it: False."""
    service = peer.service
    keyring = service.keyring
    if keyring is None:
        peer.key = None
        peer.rights = None
        return True
    if peer.key is None:
        end_with(peer, no_key())
        return False
    key = keyring.usable(peer.key.id, service.wall_ns)
    if key is None:
        end_with(peer, not_accepted())
        return False
    if key is not peer.key:
        admit(peer, key)
    return True


def _review_subscriptions(peer: Peer) -> None:
    """Remove subscriptions without permission; stop requests to peers that may not serve them."""
    service = peer.service
    router = service.router
    for pattern, group, policy, is_listener in router.subscriptions(peer.outbox):
        if not may_subscribe(peer, pattern):
            router.unsubscribe(peer.outbox, pattern, group)
            peer.weight -= weight_of(pattern)
            error = may_not("subscribe to", pattern)
            service.count_refused(type(error).__name__)
            peer.owe(error_frame(peer, pattern, group, _REFUSED, error))
        elif not is_listener and not may_serve(peer, pattern):
            router.subscribe(peer.outbox, pattern, group, policy, True)
