"""What a journal holds, beside what its publisher was told."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.crashes.publisher import Publisher

import weft
from weft.journal.read.messages import history
from weft.journal.read.record import Hole, JournalRecord
from weft.journal.segment.blocks import header_at
from weft.journal.segment.file_names import JournalFolder, segments_of
from weft.journal.segment.verify import DamagedRange, check_segment


class Tally(NamedTuple):
    """A journal in numbers.

    A torn tail leaves positions without messages, which nobody was told are safe: these are no
    `holes`.
    """

    published: int
    acknowledged: int
    kept: int
    segments: int
    sealed: int
    lost: list[int]
    doubled: list[int]
    torn_tails: int
    torn_messages: int
    holes: list[int]
    faults: list[DamagedRange]

    @property
    def is_right(self) -> bool:
        """Say if every acknowledged message is there once, and nothing is missing or damaged."""
        return not (self.lost or self.doubled or self.holes or self.faults)

    def lines(self) -> Iterator[str]:
        """The numbers for people."""
        yield f"published               {self.published:>10,}"
        yield f"acknowledged            {self.acknowledged:>10,}"
        yield (
            f"in the journal          {self.kept:>10,}"
            f"   in {self.segments:,} segments, {self.sealed:,} of them sealed"
        )
        yield f"acknowledged but lost   {len(self.lost):>10,}{_some(self.lost)}"
        yield f"doubled                 {len(self.doubled):>10,}{_some(self.doubled)}"
        yield (
            f"torn tails cut off      {self.torn_tails:>10,}   with {self.torn_messages:,} messages"
        )
        yield f"other positions missing {len(self.holes):>10,}{_some(self.holes)}"
        yield f"faults                  {len(self.faults):>10,}{_some(self.faults)}"


def tally(place: JournalFolder, publisher: Publisher) -> Tally:
    """Read a whole journal, which nobody writes."""
    root = place.folder.parent
    tails = list(place.folder.glob("_torn-*"))
    torn: set[int] = set().union(*map(_torn_positions, tails))
    numbers: Counter[int] = Counter()
    holes: set[int] = set()
    for found in history(root, place.service, place.node, first=0):
        if isinstance(found, JournalRecord):
            numbers[weft.Message.from_frame(found.frame).get_int64("n")] += 1
        else:
            holes |= _positions(found)
    segments = segments_of(root, place.service, place.node)
    return Tally(
        published=publisher.published,
        acknowledged=len(publisher.acknowledged),
        kept=numbers.total(),
        segments=len(segments),
        sealed=sum(each.state == "sealed" for each in segments),
        lost=sorted(publisher.acknowledged - numbers.keys()),
        doubled=sorted(number for number, count in numbers.items() if count > 1),
        torn_tails=len(tails),
        torn_messages=len(torn),
        holes=sorted(holes),
        faults=[fault for each in segments for fault in check_segment(each).faults],
    )


def _torn_positions(path: Path) -> set[int]:
    block = header_at(path.read_bytes(), 0)
    return set() if block is None else set(range(block.first, block.first + block.frames))


def _positions(missing: Hole) -> set[int]:
    return set(range(missing.first, missing.last + 1))


def _some(found: list[int] | list[DamagedRange]) -> str:
    return f"   {found[:5]}" if found else ""
