"""Requests that this connection received and has not answered.

When the connection is lost, the gateway reports an error to their requesters, and later answers
have no receiver.
"""

from weft.errors import ConnectionLost
from weft.wire.frames import HEADER_BYTES

# The oldest are removed: a late answer to one of them is then not detected.
REQUESTS_MAX = 16_384


class OpenRequests:
    """Reply subjects of unanswered requests, by whether their connection is still open.

    Only the loop's thread adds; any thread answers: each step is a single dict operation.
    """

    def __init__(self) -> None:
        self._open: dict[bytes, None] = {}
        self._lost: dict[bytes, None] = {}

    def add(self, frames: list[bytes]) -> None:
        """Add received requests."""
        known = self._open
        for frame in frames:
            start = HEADER_BYTES + frame[6]
            known[frame[start : start + frame[7]]] = None
        _cut(known)

    def lost(self) -> None:
        """Handle a lost connection: its requests can no longer be answered."""
        self._lost.update(self._open)
        _cut(self._lost)
        self._open = {}

    def settle(self, reply: bytes) -> None:
        """Mark a request as answered.

        Raises:
            ConnectionLost: The connection was lost, and the requester was notified.
        """
        if reply in self._lost:
            raise ConnectionLost(
                "the connection that received the request was lost, and the requester was notified"
            )
        self._open.pop(reply, None)


def _cut(replies: dict[bytes, None]) -> None:
    while len(replies) > REQUESTS_MAX:
        replies.pop(next(iter(replies)), None)
