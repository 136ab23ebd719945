"""Another gateway of the mesh, as the router knows it: a peer that wants what its clients want.

Everything for it is counted by one dense number, so that it can tell what it did not get. The upper
16 bits are the epoch: it begins anew when the gateway was forgotten meanwhile.
"""

from weft.broker.service import Peer
from weft.mesh.routing.forward_header import FIRST_MARK

EPOCH_BITS = 48
EPOCH_MAX = (1 << 64 - EPOCH_BITS) - 1


class Distant:
    """One gateway; `next` is the number of the next frame for it."""

    def __init__(self, peer: Peer, name: str, epoch: int) -> None:
        self.peer = peer
        self.outbox = peer.outbox
        self.number = peer.number
        self.name = name
        self.next = epoch << EPOCH_BITS
        # The version of its interest that messages for it are routed by, as envelopes carry it.
        self.mark = FIRST_MARK
        # Up to where it has said that it has everything.
        self.acked = self.next
        # What `next` was when it was last looked at, and when it is to be told of it.
        self.seen = self.next
        self.mark_ns = 0
        self.mark_wait_ns = 0
        # When it was last told, and since when it has confirmed nothing of that; 0: it has.
        self.marked_ns = 0
        self.unconfirmed_ns = 0
        # Up to where it is known what it never got.
        self.missed = self.next
        # When it was last sent something again.
        self.resent_ns = 0

    @property
    def epoch(self) -> int:
        """How often it was forgotten and met again."""
        return self.next >> EPOCH_BITS
