"""What a change of keys or rights means for the peers that are here already.

Due at the end of a turn, once for all that changed in it. Whoever's key is no longer accepted is
ended; others keep their connection, and lose what they may no longer have.
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
    """Look at every peer anew, after rights have changed."""
    # Other gateways came in by no key, and have shown otherwise that they belong here.
    greeted = [
        peer
        for peer in service.peers.values()
        if peer.is_greeted and not peer.is_over and peer.carrier is None
    ]
    staying = [peer for peer in greeted if review_key(peer)]
    if service.is_right_lost:
        # Before what clients have by them is looked at.
        for peer in staying:
            disable_unjustified(peer)
    is_right_lost = service.is_right_lost
    service.is_review_due = False
    service.is_right_lost = False
    for peer in staying:
        if peer.rights is None:
            continue
        # Found anew with its next message, and with it what may be sent there.
        peer.route = NOWHERE
        if is_right_lost:
            _review_subscriptions(peer)
    if service.laning is not None:
        service.laning.look_at_rights()


def review_key(peer: Peer) -> bool:
    """Give a peer the rights of its key; if that is not accepted any more, end it: then False."""
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
    """Take back what a peer may no longer hear, and let it listen where it may no longer serve."""
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
