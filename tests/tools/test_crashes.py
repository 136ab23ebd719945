"""The crashes command: two kills, and a journal that lacks what it should hold."""

import random
from pathlib import Path

from tests.journal.desk import batch_of, place_in
from tools.crashes.kills import kill_often
from tools.crashes.publisher import Publisher
from tools.crashes.tally import tally

from weft.journal.segment.file_names import JournalFolder
from weft.journal.segment.recovery import recover
from weft.journal.segment.writer import OpenSegment
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message


def keep(place: JournalFolder, numbers: list[int], first: int = 0) -> Path:
    """A segment of these numbers whose writer is gone."""
    frames = [encode(Kind.MESSAGE, b"a", Message(n=number).encode()) for number in numbers]
    segment = OpenSegment(place, first)
    segment.append(batch_of(frames, first))
    segment.abandon()
    return segment.path


def told(*numbers: int) -> Publisher:
    """A publisher to whom these were acknowledged."""
    publisher = Publisher(random.Random(1))
    publisher.acknowledged.update(numbers)
    return publisher


async def test_two_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    found = await kill_often(tmp_path, kills=2, seed=1)
    assert found.is_right
    assert 0 < found.acknowledged <= found.kept <= found.published


def test_what_is_lost_or_doubled_is_told(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    keep(place, [1, 2, 2, 4])
    recover(place)
    found = tally(place, told(1, 2, 3))
    assert (found.lost, found.doubled, found.kept) == ([3], [2], 4)
    assert not found.is_right


def test_positions_that_nobody_cut_off_are_holes(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    keep(place, [1, 2], first=3)
    recover(place)
    found = tally(place, told(1, 2))
    assert found.holes == [0, 1, 2]
    assert not found.is_right


def test_a_torn_tail_is_no_hole_and_no_fault(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    keep(place, [1, 2])
    torn = keep(place, [3, 4], first=2)
    torn.write_bytes(torn.read_bytes()[:-1])
    recover(place)
    found = tally(place, told(1, 2))
    assert (found.torn_tails, found.torn_messages) == (1, 2)
    assert found.is_right


def test_damage_is_a_fault(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    keep(place, [1, 2])
    recover(place)
    (full,) = place.folder.glob("_full-*")
    full.write_bytes(full.read_bytes()[:-5])
    assert len(tally(place, told(1, 2)).faults) == 1
