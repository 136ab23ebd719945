"""What looks after lanes, as far as the core must know it.

Lanes lead from client to client, past the gateway; fabric/lanes.py has their state. What is said
about them comes here in the order in which it was said, and whoever asks for more than it had may
have to wait for its answer: until nothing goes past the gateway that it should hear.
"""

from weft.core.service import Peer
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
