"""Remote gateway as a peer of the router, with the subscriptions of its interest set.

All frames for it are numbered consecutively, so that it can detect missing ones. The upper 16 bits
are an epoch, which changes when the gateway was forgotten in between.
"""

from weft.broker.service import Peer
from weft.mesh.routing.forward_header import FIRST_MARK

EPOCH_BITS = 48
EPOCH_MAX = (1 << 64 - EPOCH_BITS) - 1


class RemoteGateway:
    """One remote gateway; `next` is the number of the next frame for it."""

    def __init__(self, peer: Peer, name: str, epoch: int) -> None:
        self.peer = peer
        self.outbox = peer.outbox
        self.number = peer.number
        self.name = name
        self.next = epoch << EPOCH_BITS
        # Mark of the interest version that frames for it are routed by.
        self.mark = FIRST_MARK
        # End of the acknowledged numbers.
        self.acked = self.next
        # `next` at the last check, and time and delay of the next mark.
        self.seen = self.next
        self.mark_ns = 0
        self.mark_wait_ns = 0
        # Time of the last mark, and of the first without an acknowledgement; 0: none.
        self.marked_ns = 0
        self.unconfirmed_ns = 0
        # End of the numbers for which lost ranges were handled.
        self.missed = self.next
        # Time of the last retransmission.
        self.resent_ns = 0

    @property
    def epoch(self) -> int:
        """How many times it was forgotten and returned, modulo 65,536."""
        return self.next >> EPOCH_BITS
