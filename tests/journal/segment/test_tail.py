import shutil
from pathlib import Path

from tests.journal.desk import batch_of, message, place_in, written

from weft.journal.segment.blocks import Block, blocks_in
from weft.journal.segment.file_names import JournalFolder, segments_of
from weft.journal.segment.recovery import recover
from weft.journal.segment.tail import Tails


def test_ends_are_found_as_they_move(tmp_path: Path) -> None:
    tails = Tails(tmp_path, "weather")
    assert (tails.ends(), tails.starts()) == ({}, {})
    place = place_in(tmp_path)
    written(place, 20).finish()
    assert tails.ends() == {"london": 20}
    segment = written(place, 5, first=20)
    assert tails.ends() == {"london": 25}
    segment.append(batch_of([message(25), message(26)], 25))
    assert tails.ends() == {"london": 27}
    segment.finish()
    assert tails.ends() == {"london": 27}
    written(place_in(tmp_path, node="paris"), 3, first=7)
    assert tails.ends() == {"london": 27, "paris": 10}
    assert tails.starts() == {"london": 0, "paris": 7}


def test_half_a_block_does_not_count(tmp_path: Path) -> None:
    written(place_in(tmp_path), 20)
    path = JournalFolder(tmp_path, "weather", "london").open(0)
    path.write_bytes(path.read_bytes()[:-1])
    assert Tails(tmp_path, "weather").ends() == {"london": 10}


def test_a_damaged_block_is_not_the_end_of_an_open_segment(tmp_path: Path) -> None:
    written(place_in(tmp_path), 200)
    path = JournalFolder(tmp_path, "weather", "london").open(0)
    data = bytearray(path.read_bytes())
    blocks = [each for each in blocks_in(bytes(data)) if isinstance(each, Block)]
    data[blocks[5].body] ^= 1
    path.write_bytes(data)
    tails = Tails(tmp_path, "weather")
    assert tails.ends() == {"london": 200}
    path.write_bytes(data[:-1])
    assert Tails(tmp_path, "weather").ends() == {"london": 190}


def test_a_journal_that_was_begun_again_is_looked_at_from_its_beginning(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    recover(place)
    written(place, 200).abandon()
    tails = Tails(tmp_path, "weather")
    assert tails.ends() == {"london": 200}
    shutil.rmtree(place.folder)
    place.folder.mkdir()
    recover(place)
    written(place, 20).abandon()
    assert tails.extent().ends == {"london": 20}


def test_a_journal_without_segments_goes_on_where_it_was(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 20).finish()
    recover(place)
    for segment in segments_of(tmp_path, "weather"):
        segment.path.unlink()
    extent = Tails(tmp_path, "weather").extent()
    assert (extent.starts, extent.ends) == ({"london": 20}, {"london": 20})
