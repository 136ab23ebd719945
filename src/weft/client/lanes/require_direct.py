"""Enforcement of `direct="require"`: rejects messages that would go through the gateway."""

from weft.client.lanes.splitter import Splitter
from weft.errors import NotDirect
from weft.wire.frames import Flag

_OF_GATEWAYS = int(Flag.ANSWER | Flag.MASKED)
_REQUEST = int(Flag.REQUEST)


class Required:
    """Checks that a message can go through a lane."""

    def __init__(self, splitter: Splitter) -> None:
        self._splitter = splitter

    def check(self, subject: str, flags: int, reply: str) -> None:
        """Check that a message can go through a lane.

        Raises:
            NotDirect: It cannot, at least not now.
        """
        # System requests may go through the gateway.
        if subject.startswith("_WEFT."):
            return
        if reply and not reply.encode().startswith(self._splitter.own_inbox):
            raise NotDirect(
                "a lane is required, but the reply subject is not in this connection's inbox"
            )
        # Answers return on the path of the request, and expect none.
        if subject.startswith("_INBOX."):
            if reply:
                raise NotDirect(
                    "a lane is required, but an answer on a lane cannot have a reply subject"
                )
            return
        if flags & _OF_GATEWAYS:
            raise NotDirect("a lane is required, but acknowledge and masked need the gateway")
        direct = self._splitter.routes.get(subject.encode())
        if direct is None:
            raise NotDirect(f"a lane is required, but {subject!r} has none: call direct() first")
        if flags & _REQUEST and not direct.answering:
            raise NotDirect(f"a lane is required, but no receiver on it answers {subject!r}")
