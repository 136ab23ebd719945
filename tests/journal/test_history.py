from pathlib import Path

import pytest
from tests.journal.desk import batch_of, message, place_in, spoil_frames, written

from weft.journal.blocks import Block, blocks_in
from weft.journal.history import history
from weft.journal.kept import Hole, Kept
from weft.journal.places import Place, segments_of


def positions(root: Path, *bounds: int | None) -> list[int | Hole]:
    found = history(root, "weather", "london", *bounds)
    return [each.position if isinstance(each, Kept) else each for each in found]


def three(root: Path) -> Place:
    place = place_in(root)
    written(place, 20).finish()
    written(place, 20, first=20).finish()
    written(place, 5, first=40)
    return place


def test_segments_follow_one_another(tmp_path: Path) -> None:
    three(tmp_path)
    assert positions(tmp_path) == list(range(45))
    (first, *_) = history(tmp_path, "weather", "london")
    assert first == Kept(0, message(0))


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
    assert [each.position for each in found if isinstance(each, Kept)] == list(range(25))
    assert found[20] == Kept(20, message(100))
