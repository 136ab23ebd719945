"""Verification of segments: checks every byte and changes nothing.

Faults name the file, the bytes, and the lost positions.
"""

from pathlib import Path
from typing import NamedTuple

from weft.errors import ProtocolError
from weft.journal.parquet.sealed_files import checksum
from weft.journal.segment.blocks import Block, BlockKind, Damage, block_at, blocks_in, salt_of
from weft.journal.segment.file_names import Segment
from weft.wire.frames import BODY_LIMIT_MAX_BYTES, Run
from weft.wire.frames import Kind as FrameKind


class DamagedRange(NamedTuple):
    """Fault in the bytes `start` … `end` of a file.

    The positions `first` … `last` are lost; both are -1 if none is known to be.
    """

    path: Path
    start: int
    end: int
    first: int
    last: int
    why: str


class SegmentResult(NamedTuple):
    """Result of one segment."""

    segment: Segment
    messages: int
    size: int
    faults: list[DamagedRange]


def check_segment(segment: Segment) -> SegmentResult:
    """Check one segment.

    Raises:
        OSError: unreadable file.
    """
    if segment.state == "sealed":
        return _check_sealed(segment)
    data = segment.path.read_bytes()
    check = _Check(segment, data)
    for found in blocks_in(data, salt=check.salt):
        if isinstance(found, Block):
            check.block(found)
        else:
            check.damage(found)
    check.end()
    return SegmentResult(segment, check.messages, len(data), check.faults)


class _Check:
    """Check of a segment of blocks, from its start to its end."""

    def __init__(self, segment: Segment, data: bytes) -> None:
        self.messages = 0
        self.faults: list[DamagedRange] = []
        self.salt = salt_of(data, is_full=segment.state == "full")
        self._segment = segment
        self._data = data
        self._position = segment.first
        self._is_ended = False
        # Damage whose lost positions are known once the next block is found.
        self._open: Damage | None = None

    def block(self, block: Block) -> None:
        """Check the next block."""
        if self._is_ended:
            self._fault(block.start, block.end, "a block follows the end")
        if self._open is not None:
            self._lost(self._open, block.first)
        elif block.first != self._position:
            lost = block.first - 1 if block.first > self._position else -1
            self._fault(block.start, block.end, f"position {block.first} comes next", lost)
        self._is_ended = block.kind == BlockKind.END
        if block.kind == BlockKind.FRAMES:
            self._frames(block)
        self._position = block.first + block.frames

    def damage(self, damage: Damage) -> None:
        """Record damage before the next block."""
        if not damage.is_tail:
            self._open = damage
            return
        torn = block_at(self._data, damage.start, self.salt)
        after = self._position if torn is None else torn.first + torn.frames
        if self._segment.last >= 0:
            after = self._segment.last + 1
        self._lost(damage, after)

    def end(self) -> None:
        """Check the end of the segment."""
        if not self._data:
            self._fault(0, 0, "it is empty")
        elif self._segment.state == "full" and not self.faults:
            size = len(self._data)
            if not self._is_ended:
                self._fault(size, size, "its end is missing", self._segment.last)
            elif self._position != self._segment.last + 1:
                self._fault(size, size, f"it ends before position {self._position}")

    def _lost(self, damage: Damage, after: int) -> None:
        self._fault(damage.start, damage.end, damage.why, after - 1)
        self._open = None
        self._position = after

    def _frames(self, block: Block) -> None:
        run = Run(BODY_LIMIT_MAX_BYTES)
        at, count = block.body, 0
        try:
            while run.read(self._data, at, block.end) and run.kind == FrameKind.MESSAGE:
                at, count = run.end, count + run.count
        except ProtocolError as error:
            self._fault(block.start, block.end, str(error))
            return
        self.messages += count
        if at != block.end or count != block.frames:
            self._fault(block.start, block.end, f"{count} of {block.frames} messages are readable")

    def _fault(self, start: int, end: int, why: str, last: int = -1) -> None:
        first = self._position if last >= self._position else -1
        last = last if first >= 0 else -1
        self.faults.append(DamagedRange(self._segment.path, start, end, first, last, why))


def _check_sealed(segment: Segment) -> SegmentResult:
    crc, size = checksum(segment.path)
    messages = segment.last - segment.first + 1
    if crc == segment.crc:
        return SegmentResult(segment, messages, size, [])
    why = f"its checksum is {crc:08x}, its name has {segment.crc:08x}"
    fault = DamagedRange(segment.path, 0, size, segment.first, segment.last, why)
    return SegmentResult(segment, 0, size, [fault])
