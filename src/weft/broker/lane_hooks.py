"""What looks after lanes, as far as the core must know it.

Lanes lead from client to client, past the gateway; their state is in lanes/coordinator.py. LANE
frames are passed here in order, and the answer to a subscription may be delayed until no message
that it matches goes past the gateway.
"""

from weft.broker.service import Peer
from weft.errors import WeftError


class Laning:
    """Whoever looks after the lanes of a service."""

    def take(self, peer: Peer, subject: bytes, frame: bytes) -> None:
        """Deal with a whole LANE frame.

        Raises:
            UsageError: it says what cannot be.
            Refused: it says what may not be.
            ProtocolError: it is no word; the connection ends.
        """
        raise NotImplementedError

    def pass_tail(self, peer: Peer, at: int) -> WeftError | None:
        """Pass the TAIL frame at an offset of the arena on; what is wrong with it, or None."""
        raise NotImplementedError

    def subscribed(self, peer: Peer) -> None:
        """A peer has asked for more."""
        raise NotImplementedError

    def unsubscribed(self) -> None:
        """A peer has taken subscriptions back."""
        raise NotImplementedError

    def holds(self, peer: Peer) -> bool:
        """Say if a peer has to wait for its answers."""
        raise NotImplementedError

    def hold(self, peer: Peer, frames: bytes) -> None:
        """Owe these to a peer that has to wait, as soon as it need not."""
        raise NotImplementedError

    def look_at_routes(self) -> None:
        """Subscriptions have changed since the last turn."""
        raise NotImplementedError

    def look_at_rights(self) -> None:
        """Rights have changed."""
        raise NotImplementedError

    def part(self, peer: Peer) -> None:
        """A peer is over: nothing leads to it any more."""
        raise NotImplementedError
