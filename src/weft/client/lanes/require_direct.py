"""What `direct="require"` refuses: everything that would go through the gateway."""

from weft.client.lanes.splitter import Splitter
from weft.errors import NotDirect
from weft.wire.frames import Flag

_OF_GATEWAYS = int(Flag.ANSWER | Flag.MASKED)
_REQUEST = int(Flag.REQUEST)


class Required:
    """The subjects that lanes lead to, and nothing else may be published to."""

    def __init__(self, splitter: Splitter) -> None:
        self._splitter = splitter

    def check(self, subject: str, flags: int, reply: str) -> None:
        """Refuse what cannot go by a lane.

        Raises:
            NotDirect: it cannot, at least now.
        """
        # The gateway's own subjects are no secret.
        if subject.startswith("_WEFT."):
            return
        if reply and not reply.encode().startswith(self._splitter.own_inbox):
            raise NotDirect("a lane is required, and brings answers only to whoever asks")
        # Answers go back the way that the question came, and await none.
        if subject.startswith("_INBOX."):
            if reply:
                raise NotDirect("a lane is required, and brings no answer to an answer")
            return
        if flags & _OF_GATEWAYS:
            raise NotDirect("a lane is required, and confirms nothing and hides nobody")
        direct = self._splitter.routes.get(subject.encode())
        if direct is None:
            raise NotDirect(f"a lane is required, and none leads where {subject!r} goes")
        if flags & _REQUEST and not direct.answering:
            raise NotDirect(f"a lane is required, and nobody at its end answers {subject!r}")
