"""Periodic checks: deadlines, pings, expired keys, events about slow consumers.

Called about once a second. It ends everything that is overdue, so nothing else in the core keeps a
timer.
"""

from weft.broker.auth.revalidate import review_key
from weft.broker.replies import end_with
from weft.broker.reply_aliases import expire_masks
from weft.broker.requests import expire_requests
from weft.broker.service import Peer, Service
from weft.broker.system_events import announce_peer
from weft.errors import Silent, TooSlow
from weft.wire.frames import Kind, encode

# Time for an ended connection to close after everything was sent to it.
LINGER_NS = 2_000_000_000
# Interval of pings to a connection that is not read from.
HELD_PING_NS = 2_000_000_000

_PING = encode(Kind.PING)
_LINGER_NS = LINGER_NS
_S = 1_000_000_000


def sweep(service: Service) -> list[Peer]:
    """Check every peer; return the ended peers whose transports must close now."""
    lost: list[Peer] = []
    # A transport that finds its socket broken removes its peer: iterate over a copy.
    for peer in list(service.peers.values()):
        if peer.outbox.is_behind() and peer.door is not None:
            peer.door.press()
        if peer.is_over:
            if service.now_ns - peer.over_ns > _patience_ns(peer):
                lost.append(peer)
            continue
        peer.outbox.expire(service.now_ns)
        if peer.outbox.is_cut:
            if peer.door is not None:
                peer.door.fall_behind()
            continue
        if peer.key is not None and not review_key(peer):
            continue
        _check_lateness(peer)
        _check_pace(peer)
        if peer.asking:
            expire_requests(peer, service.now_ns - int(service.limits.request_s * _S))
        if peer.masks:
            expire_masks(peer, service.now_ns - int(service.limits.request_s * _S))
    return lost


def _patience_ns(peer: Peer) -> int:
    """How long an ended peer may take: longer while frames are queued for it.

    A disconnected slow consumer is sent only the error, which its next connection gets, too.
    """
    outbox = peer.outbox
    is_owed = outbox.is_behind() and not outbox.is_cut
    return outbox.bounds.limit_age_ns if is_owed else _LINGER_NS


def _check_lateness(peer: Peer) -> None:
    service = peer.service
    now_ns = service.now_ns
    limits = service.limits
    if not peer.is_greeted:
        if now_ns - peer.since_ns > limits.greeting_s * _S:
            end_with(peer, TooSlow(f"no greeting within {limits.greeting_s:g} s"))
        return
    if peer.rest_ns and now_ns - peer.rest_ns > limits.frame_s * _S:
        end_with(peer, TooSlow(f"a frame was not complete within {limits.frame_s:g} s"))
        return
    if peer.is_held or peer.is_paused:
        # It is not read from, so its silence means nothing.
        peer.heard_ns = now_ns
        if now_ns - peer.pinged_ns >= HELD_PING_NS:
            # Its pings are not read either: show it that the gateway is alive.
            peer.pinged_ns = now_ns
            peer.owe(_PING)
        return
    quiet_ns = now_ns - peer.heard_ns
    if quiet_ns <= limits.ping_s * _S:
        return
    if peer.pinged_ns <= peer.heard_ns:
        peer.pinged_ns = now_ns
        peer.owe(_PING)
    elif now_ns - peer.pinged_ns > limits.ping_s * _S:
        # From the ping, not from the last bytes: a gateway that stalled grants the full time.
        end_with(peer, Silent(f"nothing received for {quiet_ns / _S:.0f} s, not even a PONG"))


def _check_pace(peer: Peer) -> None:
    outbox = peer.outbox
    is_behind = outbox.is_behind()
    if is_behind and not peer.is_called_slow:
        announce_peer(peer, "slow_reader", owed=outbox.owed())
    peer.is_called_slow = is_behind
    dropped = outbox.dropped()
    if dropped > peer.dropped_said:
        announce_peer(peer, "gap", count=dropped - peer.dropped_said)
        peer.dropped_said = dropped
