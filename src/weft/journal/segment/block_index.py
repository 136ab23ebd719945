"""Block index: known positions of blocks in segments, to avoid scanning the file from its start.

A reader that follows a journal asks for its newest positions repeatedly; scanning a segment from
its beginning each time would take longer than reading them.
"""

from bisect import bisect_right
from collections import OrderedDict
from pathlib import Path

from weft.journal.segment.blocks import Bytes, block_at

# Minimum distance between indexed blocks, and the number of indexed segments.
APART_BYTES = 256 << 10
SEGMENTS_MAX = 64


class Landmarks:
    """Block index of the unsealed segments that this process has read."""

    def __init__(self) -> None:
        # First positions of blocks, and their offsets.
        self._known: OrderedDict[Path, tuple[list[int], list[int]]] = OrderedDict()

    def start(self, path: Path, data: Bytes, position: int, salt: int) -> int:
        """Return an offset at or before the block of a position, to start reading at."""
        positions, offsets = self._known.setdefault(path, ([], []))
        self._known.move_to_end(path)
        if len(self._known) > SEGMENTS_MAX:
            self._known.popitem(last=False)
        nearest = bisect_right(positions, position) - 1
        at = offsets[nearest] if nearest >= 0 else 0
        block = block_at(data, at, salt)
        if nearest >= 0 and (block is None or block.first != positions[nearest]):
            # The name now belongs to another file.
            positions.clear()
            offsets.clear()
            at = 0
            block = block_at(data, at, salt)
        while (
            block is not None and block.end < len(data) and block.first + block.frames <= position
        ):
            at = block.end
            block = block_at(data, at, salt)
            is_new = not offsets or at >= offsets[-1] + APART_BYTES
            if block is not None and is_new and block.frames:
                positions.append(block.first)
                offsets.append(at)
        return at


LANDMARKS = Landmarks()
