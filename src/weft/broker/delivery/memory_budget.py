"""Memory budget of all backlogs of a service, and the number of crowded ones.

A piece that several backlogs hold is one object and is charged once. The remaining budget bounds
every backlog: a few slow consumers may each queue much, many only a little, and none can leave the
others without space.
"""

from weft.broker.delivery.chunk import FrameChunk

BACKLOGS_LIMIT_BYTES = 512 << 20
# Every connection may queue this much, even if the budget is used up.
BACKLOG_FLOOR_BYTES = 1 << 20

_FLOOR = BACKLOG_FLOOR_BYTES


class Budget:
    """Memory of the backlogs of one service, in bytes.

    `crowded` counts the outboxes above their high-water mark. `is_eased` is set when an outbox for
    which a publisher is paused came down to its low-water mark; links have a budget of their own,
    which sets it in the service's, too.
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
        """Return how many bytes one backlog may take now."""
        return max(_FLOOR, self.limit_bytes - self.used_bytes)

    def ease(self) -> None:
        """Record that an outbox came down to its low-water mark."""
        self.is_eased = True
        if self._service is not None:
            self._service.is_eased = True

    def charge(self, count: int) -> None:
        """Count bytes as used; a negative count releases them."""
        self.used_bytes += count

    def hold(self, piece: FrameChunk) -> None:
        """Charge a piece when it gets its first holder."""
        if piece.holders == 0:
            self.used_bytes += len(piece.frames)
        piece.holders += 1

    def release(self, piece: FrameChunk) -> None:
        """Release the bytes of a piece when it loses its last holder."""
        piece.holders -= 1
        if piece.holders == 0:
            self.used_bytes -= len(piece.frames)
