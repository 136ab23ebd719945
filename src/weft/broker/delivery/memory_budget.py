"""Memory that all backlogs of a service may take together, and how many of them are crowded.

A piece that several backlogs hold is one object, and its bytes are charged once. What is left of
the budget bounds every backlog: a few slow readers may each be owed much, many only a little, and
no reader can leave the others without room.
"""

from weft.broker.delivery.chunk import Piece

BACKLOGS_LIMIT_BYTES = 512 << 20
# Every connection may be owed this much, however little is left.
BACKLOG_FLOOR_BYTES = 1 << 20

_FLOOR = BACKLOG_FLOOR_BYTES


class Budget:
    """What the backlogs of one service take, in bytes.

    `crowded` counts the outboxes over their high-water mark; `is_eased` is set when one of those
    for which a publisher is held has come down to its low-water mark, in the budget of the service
    as well where links have one of their own.
    """

    def __init__(
        self, limit_bytes: int = BACKLOGS_LIMIT_BYTES, service: "Budget | None" = None
    ) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.crowded = 0
        self.is_eased = False
        self._service = service

    def allowance(self) -> int:
        """Return how many bytes one backlog may take at the moment."""
        return max(_FLOOR, self.limit_bytes - self.used_bytes)

    def ease(self) -> None:
        """Note that an outbox has come down to its low-water mark."""
        self.is_eased = True
        if self._service is not None:
            self._service.is_eased = True

    def charge(self, count: int) -> None:
        """Count bytes that are kept; a negative count gives bytes back."""
        self.used_bytes += count

    def hold(self, piece: Piece) -> None:
        """Charge a piece to its first holder."""
        if piece.holders == 0:
            self.used_bytes += len(piece.frames)
        piece.holders += 1

    def release(self, piece: Piece) -> None:
        """Give the bytes of a piece back when its last holder releases it."""
        piece.holders -= 1
        if piece.holders == 0:
            self.used_bytes -= len(piece.frames)
