"""The requests that a connection was given and has not answered.

When the connection is lost their requesters get an error, and later answers have no receiver.
"""

from weft.errors import ConnectionLost
from weft.wire.frames import HEADER_BYTES

# The oldest are forgotten: whether an answer to one of them comes too late is then unknown.
REQUESTS_MAX = 16_384


class OpenRequests:
    """The reply subjects of requests without an answer, by whether their connection is still open.

    Only the loop's thread adds, and any thread answers: each step is one operation on a dict.
    """

    def __init__(self) -> None:
        self._open: dict[bytes, None] = {}
        self._lost: dict[bytes, None] = {}

    def add(self, frames: list[bytes]) -> None:
        """Requests came."""
        known = self._open
        for frame in frames:
            start = HEADER_BYTES + frame[6]
            known[frame[start : start + frame[7]]] = None
        _cut(known)

    def lost(self) -> None:
        """The connection is gone: none of them can be answered any more."""
        self._lost.update(self._open)
        _cut(self._lost)
        self._open = {}

    def settle(self, reply: bytes) -> None:
        """A request is answered now.

        Raises:
            ConnectionLost: its requester was told already that no answer comes.
        """
        if reply in self._lost:
            raise ConnectionLost(
                "the connection that the request came by was lost: its requester was told so"
            )
        self._open.pop(reply, None)


def _cut(replies: dict[bytes, None]) -> None:
    while len(replies) > REQUESTS_MAX:
        replies.pop(next(iter(replies)), None)
