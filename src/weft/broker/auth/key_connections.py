"""Connections grouped by key, so that one key cannot take what all share."""

from weft.broker.service import Holder, Peer


def join_holder(peer: Peer, key_id: str) -> None:
    """Count a peer, and what it takes from now on, for its key."""
    holders = peer.service.holders
    holder = holders.get(key_id)
    if holder is None:
        holder = holders[key_id] = Holder(key_id)
    holder.peers += 1
    peer.holder = holder


def leave_holder(peer: Peer) -> None:
    """Count a peer no longer; it holds nothing by now."""
    holder = peer.holder
    if holder is not None:
        peer.holder = None
        holder.peers -= 1
        if not holder.peers:
            del peer.service.holders[holder.key_id]


def holder_of(peer: Peer, connection: int) -> str:
    """Return what things of a peer count for: its key, or else the connection they came by."""
    return f"connection {connection}" if peer.key is None else f"key {peer.key.id}"
