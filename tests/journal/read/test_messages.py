from pathlib import Path

import pytest
from tests.journal.desk import batch_of, message, place_in, spoil_frames, written

from weft.journal.parquet.seal import seal_all
from weft.journal.read.messages import history
from weft.journal.read.record import Hole, JournalRecord
from weft.journal.segment.blocks import Block, blocks_in, end_block, seal_batch
from weft.journal.segment.file_names import JournalFolder, segments_of
from weft.journal.segment.writer import OpenSegment


def positions(root: Path, *bounds: int | None) -> list[int | Hole]:
    found = history(root, "weather", "london", *bounds)
    return [each.position if isinstance(each, JournalRecord) else each for each in found]


def three(root: Path) -> JournalFolder:
    place = place_in(root)
    written(place, 20).finish()
    written(place, 20, first=20).finish()
    written(place, 5, first=40)
    return place


def test_segments_follow_one_another(tmp_path: Path) -> None:
    three(tmp_path)
    assert positions(tmp_path) == list(range(45))
    (first, *_) = history(tmp_path, "weather", "london")
    assert first == JournalRecord(0, message(0))


def test_it_can_begin_and_end_anywhere(tmp_path: Path) -> None:
    three(tmp_path)
    for first, last in ((0, 0), (19, 20), (7, 41), (39, 44), (44, 99)):
        assert positions(tmp_path, first, last) == list(range(first, min(last, 44) + 1))
    assert positions(tmp_path, 45) == []


def test_where_there_is_none_there_is_nothing(tmp_path: Path) -> None:
    assert positions(tmp_path) == []


def test_what_is_no_longer_there_is_a_hole_if_it_is_asked_for(tmp_path: Path) -> None:
    three(tmp_path)
    segments_of(tmp_path, "weather")[0].path.unlink()
    assert positions(tmp_path) == list(range(20, 45))
    (hole, *rest) = positions(tmp_path, 5)
    assert isinstance(hole, Hole)
    assert (hole.first, hole.last, len(rest)) == (5, 19, 25)


def test_damage_is_a_hole(tmp_path: Path) -> None:
    three(tmp_path)
    path = segments_of(tmp_path, "weather")[0].path
    data = bytearray(path.read_bytes())
    blocks = [each for each in blocks_in(bytes(data)) if isinstance(each, Block)]
    data[blocks[2].body] ^= 1
    path.write_bytes(data)
    found = positions(tmp_path)
    hole = found[10]
    assert isinstance(hole, Hole)
    assert (hole.first, hole.last) == (10, 19)
    assert "the checksum of 10 messages is wrong" in hole.why
    assert [each for each in found if not isinstance(each, Hole)] == [*range(10), *range(20, 45)]
    assert positions(tmp_path, 0, 9) == list(range(10))


@pytest.mark.parametrize("filling", [b"\0", b"\x1f", b"\xff"])
def test_a_block_without_whole_frames_is_a_hole(tmp_path: Path, filling: bytes) -> None:
    three(tmp_path)
    spoil_frames(segments_of(tmp_path, "weather")[0].path, 1, filling)
    hole = Hole(10, 19, "position 10 has no whole message")
    assert positions(tmp_path) == [*range(10), hole, *range(20, 45)]
    assert positions(tmp_path, 12, 14) == [Hole(12, 14, hole.why)]
    assert positions(tmp_path, 0, 9) == list(range(10))


@pytest.mark.parametrize("change", ["flipped", "cut", "gone"])
def test_a_damaged_sealed_segment_is_a_hole_and_the_next_is_read(
    tmp_path: Path, change: str
) -> None:
    three(tmp_path)
    list(seal_all(tmp_path, "weather", "london"))
    path = segments_of(tmp_path, "weather")[0].path
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    sizes = {"flipped": len(data), "cut": len(data) // 2, "gone": 0}
    path.write_bytes(data[: sizes[change]])
    (hole, *rest) = positions(tmp_path)
    assert isinstance(hole, Hole)
    assert (hole.first, hole.last) == (0, 19)
    assert path.name in hole.why
    assert rest == list(range(20, 45))
    # From the middle of it, too.
    assert positions(tmp_path, 7, 21)[0] == hole._replace(first=7)


def forged(count: int, first: int) -> bytes:
    """A message with all blocks of a journal in its body that somebody could know of."""
    blocks = bytearray()
    for salt in (0, 1, 1 << 63):
        batch = batch_of([message(666) for _ in range(count)], first)
        seal_batch(batch, salt)
        blocks += batch.data[batch.start : batch.end]
        blocks += end_block((1 << 63) - 2, salt)
    return message(1, body=bytes(blocks))


@pytest.mark.parametrize("first", [1, 3, 40])
def test_damage_makes_no_block_of_what_is_in_a_message(tmp_path: Path, first: int) -> None:
    segment = OpenSegment(place_in(tmp_path), 0)
    for number, frame in enumerate([message(0), forged(3, first), message(2)]):
        segment.append(batch_of([frame], number))
    segment.abandon()
    data = bytearray(segment.path.read_bytes())
    block = [each for each in blocks_in(bytes(data)) if isinstance(each, Block)][2]
    for at in (block.start, block.start + 16, block.body, block.body + 40):
        damaged = data.copy()
        damaged[at] ^= 1
        segment.path.write_bytes(damaged)
        found = list(history(tmp_path, "weather", "london"))
        kept = [each for each in found if isinstance(each, JournalRecord)]
        holes = [each for each in found if isinstance(each, Hole)]
        assert kept == [JournalRecord(0, message(0)), JournalRecord(2, message(2))]
        assert [(each.first, each.last) for each in holes] == [(1, 1)]


def test_an_end_that_is_being_written_is_no_hole(tmp_path: Path) -> None:
    place = three(tmp_path)
    path = place.open(40)
    path.write_bytes(path.read_bytes()[:-3])
    assert positions(tmp_path) == list(range(40))


def test_of_two_that_overlap_the_later_one_counts(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 30).abandon()
    later = written(place, 0, first=20)
    later.append(batch_of([message(100 + number) for number in range(5)], 20))
    found = list(history(tmp_path, "weather", "london"))
    assert [each.position for each in found if isinstance(each, JournalRecord)] == list(range(25))
    assert found[20] == JournalRecord(20, message(100))
