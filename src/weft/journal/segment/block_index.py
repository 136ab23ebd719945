"""Where the blocks of a segment begin: remembered here and there, so that none is looked for twice.

Whoever follows a journal asks for its newest positions again and again; to walk there from the
beginning of a segment each time would take longer than to read them.
"""

from bisect import bisect_right
from collections import OrderedDict
from pathlib import Path

from weft.journal.segment.blocks import Bytes, block_at

# How far apart they are, and of how many segments they are kept.
APART_BYTES = 256 << 10
SEGMENTS_MAX = 64


class Landmarks:
    """What one process has seen of segments that are not sealed."""

    def __init__(self) -> None:
        # First positions of blocks, and where these begin.
        self._known: OrderedDict[Path, tuple[list[int], list[int]]] = OrderedDict()

    def start(self, path: Path, data: Bytes, position: int, salt: int) -> int:
        """Where to begin to read for a position: blocks before it need not be looked into."""
        positions, offsets = self._known.setdefault(path, ([], []))
        self._known.move_to_end(path)
        if len(self._known) > SEGMENTS_MAX:
            self._known.popitem(last=False)
        nearest = bisect_right(positions, position) - 1
        at = offsets[nearest] if nearest >= 0 else 0
        block = block_at(data, at, salt)
        if nearest >= 0 and (block is None or block.first != positions[nearest]):
            # Another file has that name now.
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
