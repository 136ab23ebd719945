"""Parts of a backlog: pieces of whole frames, shared by all backlogs that queue the same."""

from typing import TYPE_CHECKING

from weft.wire.byteops import u32_at

if TYPE_CHECKING:
    from weft.broker.delivery.drop_counts import Losses

# Approximate memory of a queued piece besides its bytes: counted against the bound, so that many
# tiny pieces cannot take many times their size.
KEPT_COST_BYTES = 256

_KEPT_COST = KEPT_COST_BYTES


class FrameChunk:
    """Whole frames that are queued in one or more backlogs."""

    def __init__(self, frames: bytes) -> None:
        self.frames = frames
        self.holders = 0


class BacklogEntry:
    """Entry of a backlog: a piece under one policy, or a hole that counts refused messages."""

    def __init__(self, piece: FrameChunk, policy: int, time_ns: int, subject: bytes | None) -> None:
        self.piece = piece
        self.cost = len(piece.frames) + _KEPT_COST
        self.policy = policy
        self.time_ns = time_ns
        self.subject = subject
        self.losses: Losses | None = None


def piece_end(data: bytearray, at: int, end: int, most: int) -> int:
    """Return the end of the whole frames that fit in `most` bytes, at least one frame."""
    last = at + u32_at(data, at)
    while last < end and last - at + u32_at(data, last) <= most:
        last += u32_at(data, last)
    return last
