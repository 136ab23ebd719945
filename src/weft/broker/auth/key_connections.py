"""Connections grouped by key, so that one key cannot use up limits of the whole service."""

from weft.broker.service import Holder, Peer


def join_holder(peer: Peer, key_id: str) -> None:
    """Count a peer, and its requests and reply aliases from now on, for its key."""
    holders = peer.service.holders
    holder = holders.get(key_id)
    if holder is None:
        holder = holders[key_id] = Holder(key_id)
    holder.peers += 1
    peer.holder = holder


def leave_holder(peer: Peer) -> None:
    """Stop counting a peer, which has no requests or reply aliases any more."""
    holder = peer.holder
    if holder is not None:
        peer.holder = None
        holder.peers -= 1
        if not holder.peers:
            del peer.service.holders[holder.key_id]


def holder_of(peer: Peer, connection: int) -> str:
    """Return the holder that a peer's resources count for: its key, or else its connection."""
    return f"connection {connection}" if peer.key is None else f"key {peer.key.id}"
