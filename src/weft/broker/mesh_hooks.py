"""Interfaces that the broker calls for remote gateways.

mesh/delivery/traffic.py forwards messages to them. Frames that arrive by a link are handled by a
carrier, not like the frames of a client.
"""

from weft.broker.delivery.outbox import Outbox
from weft.broker.routing.route import Route
from weft.wire.frames import Run


class Beyond:
    """Whoever brings messages to other gateways."""

    def spread(self, route: Route, start: int, end: int, count: int) -> Outbox | None:
        """Send stamped frames of the arena, all to one subject, to the gateways of its route.

        Return the outbox of a link on their way that is over its high-water mark, or None.
        """
        raise NotImplementedError


class Carrier:
    """Whoever deals with what comes by one link."""

    def take(self, run: Run) -> None:
        """Deal with a run of frames that lie in the arena.

        Raises:
            ProtocolError: it is none that can come here; the link ends.
        """
        raise NotImplementedError

    def part(self) -> None:
        """The link is over: nothing more comes by it, and nothing can be sent."""
        raise NotImplementedError
