"""What lies beyond the connections of a service, as far as the core must know it.

Other gateways want messages, too; fabric/traffic.py brings them there. What comes by a link to one
of them is dealt with by a carrier, and not as what a client says.
"""

from weft.core.frames import Run
from weft.core.outbox import Outbox
from weft.core.routes import Route


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
