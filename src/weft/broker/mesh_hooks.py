"""Interfaces that the broker calls for remote gateways.

mesh/delivery/traffic.py implements them. Frames that arrive by a link are handled by a Carrier, not
like the frames of a client.
"""

from weft.broker.delivery.outbox import Outbox
from weft.broker.routing.route import Route
from weft.wire.frames import Run


class Beyond:
    """Forwards messages to remote gateways."""

    def spread(self, route: Route, start: int, end: int, count: int) -> Outbox | None:
        """Forward stamped frames of the arena, all of one subject, to the gateways of their route.

        Return the outbox of a link on the way that is over its high-water mark, or None.
        """
        raise NotImplementedError


class Carrier:
    """Receives the frames of one link."""

    def take(self, run: Run) -> None:
        """Handle a run of frames in the arena.

        Raises:
            ProtocolError: a frame that links do not carry; the link ends.
        """
        raise NotImplementedError

    def part(self) -> None:
        """Called when the link has ended."""
        raise NotImplementedError
