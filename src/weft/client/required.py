"""What `direct="require"` refuses: everything that would go through the gateway."""

from collections.abc import Collection

from weft.core.frames import Flag
from weft.errors import NotDirect

_OF_GATEWAYS = int(Flag.ANSWER | Flag.MASKED)


class Required:
    """The subjects that lanes lead to, and nothing else may be published to."""

    def __init__(self, direct: Collection[bytes]) -> None:
        self._direct = direct

    def check(self, subject: str, flags: int) -> None:
        """Refuse what cannot go by a lane.

        Raises:
            NotDirect: it cannot, at least now.
        """
        # Answers go back the way that the question came; the gateway's own subjects are no secret.
        if subject.startswith(("_INBOX.", "_WEFT.")):
            return
        if flags & _OF_GATEWAYS:
            raise NotDirect("a lane is required, and confirms nothing and hides nobody")
        if subject.encode() not in self._direct:
            raise NotDirect(f"a lane is required, and none leads where {subject!r} goes")
