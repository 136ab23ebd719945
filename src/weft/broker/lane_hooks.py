"""Interface that the broker calls for lanes.

Lanes are direct connections between clients; their state is in lanes/coordinator.py. LANE frames
are passed to it in order, and it may delay the OK of a subscription until no matching message
bypasses the gateway.
"""

from weft.broker.service import Peer
from weft.errors import WeftError


class Laning:
    """Coordinator of the lanes of a service."""

    def take(self, peer: Peer, subject: bytes, frame: bytes) -> None:
        """Handle a whole LANE frame.

        Raises:
            UsageError: invalid content.
            Refused: not permitted.
            ProtocolError: not a control message; the connection ends.
        """
        raise NotImplementedError

    def pass_tail(self, peer: Peer, at: int) -> WeftError | None:
        """Relay the TAIL frame at an offset of the arena; return the error, or None."""
        raise NotImplementedError

    def subscribed(self, peer: Peer) -> None:
        """Called after a peer subscribed."""
        raise NotImplementedError

    def unsubscribed(self) -> None:
        """Called after a peer unsubscribed."""
        raise NotImplementedError

    def holds(self, peer: Peer) -> bool:
        """Return whether OKs to a peer must be delayed."""
        raise NotImplementedError

    def hold(self, peer: Peer, frames: bytes) -> None:
        """Send frames to a peer as soon as they need no longer be delayed."""
        raise NotImplementedError

    def look_at_routes(self) -> None:
        """Called once per turn in which subscriptions changed."""
        raise NotImplementedError

    def look_at_rights(self) -> None:
        """Called after permissions changed."""
        raise NotImplementedError

    def part(self, peer: Peer) -> None:
        """Called when a peer has ended."""
        raise NotImplementedError
