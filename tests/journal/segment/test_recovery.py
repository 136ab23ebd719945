import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.journal.desk import batch_of, message, place_in, written

from weft.errors import BadOption
from weft.journal.segment.blocks import Block, BlockKind, blocks_in, end_block, header_of, salt_of
from weft.journal.segment.file_names import JournalFolder, segments_of
from weft.journal.segment.recovery import RecoveryResult, owned, recover
from weft.journal.segment.verify import check_segment


def crashed(place: JournalFolder, count: int, first: int = 0) -> Path:
    """A segment whose writer is gone."""
    segment = written(place, count, first)
    segment.abandon()
    return segment.path


def test_an_empty_place_begins_at_0(tmp_path: Path) -> None:
    assert recover(place_in(tmp_path)) == RecoveryResult(0, [])


def test_it_goes_on_after_the_last_message(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    crashed(place, 25)
    assert recover(place) == RecoveryResult(25, [])
    assert recover(place) == RecoveryResult(25, [])
    (segment,) = segments_of(tmp_path, "weather")
    assert (segment.state, segment.first, segment.last) == ("full", 0, 24)
    assert check_segment(segment).faults == []


def test_segments_of_other_nodes_are_left_alone(tmp_path: Path) -> None:
    path = crashed(place_in(tmp_path, node="paris"), 5)
    assert recover(place_in(tmp_path)) == RecoveryResult(0, [])
    assert path.exists()


def test_a_segment_without_messages_is_removed(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    crashed(place, 0, first=7)
    assert recover(place) == RecoveryResult(0, [])
    assert segments_of(tmp_path, "weather") == []


def test_a_torn_end_is_cut_off_and_kept(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    path = crashed(place, 25)
    whole = path.read_bytes()
    blocks = [each for each in blocks_in(whole) if isinstance(each, Block)]
    os.truncate(path, blocks[-1].end - 3)
    found = recover(place)
    # Its header tells which positions were in it: nobody else gets them.
    assert found.position == 25
    cut, missing = found.news
    assert f"bytes after {blocks[-1].start} were cut off" in cut
    assert "5 messages are missing, positions 20 … 24" in missing
    (torn,) = place.folder.glob("_torn-*")
    assert torn.read_bytes() == whole[blocks[-1].start : blocks[-1].end - 3]
    (segment,) = segments_of(tmp_path, "weather")
    assert segment.last == 24
    assert check_segment(segment).faults == []


def test_a_recovery_that_was_cut_short_gives_no_torn_position_to_others(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    path = crashed(place, 25)
    whole = path.read_bytes()
    salt = salt_of(whole)
    last = [each for each in blocks_in(whole) if isinstance(each, Block)][-1]
    # It had set the torn end aside and cut it off, and came no further.
    place.torn(0, 1).write_bytes(whole[last.start : last.end - 3])
    os.truncate(path, last.start)
    # Neither is of this segment: other first position, other node.
    place.torn(1, 1).write_bytes(header_of(BlockKind.FRAMES, b"", 100, 1, salt))
    other = place_in(tmp_path, node="london-1")
    other.torn(0, 1).write_bytes(header_of(BlockKind.FRAMES, b"", 100, 1, salt))
    found = recover(place)
    assert found.position == 25
    (news,) = found.news
    assert "5 messages are missing, positions 20 … 24" in news
    (segment,) = segments_of(tmp_path, "weather", "london")
    assert (segment.first, segment.last) == (0, 24)


@given(st.data())
def test_wherever_it_is_cut_what_is_whole_stays(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("journal")
    place = place_in(root)
    path = crashed(place, 25)
    before = path.read_bytes()
    size = data.draw(st.integers(0, len(before)))
    os.truncate(path, size)
    whole = [each for each in blocks_in(before) if isinstance(each, Block) and each.end <= size]
    kept = sum(each.frames for each in whole)
    found = recover(place)
    assert found.position >= kept
    assert recover(place) == RecoveryResult(found.position, [])
    messages = sum(check_segment(each).messages for each in segments_of(root, "weather"))
    assert messages == kept
    torn = b"".join(each.read_bytes() for each in place.folder.glob("_torn-*"))
    assert before.startswith(before[: size - len(torn)] + torn)


def test_damage_in_the_middle_is_told_and_does_not_stop_it(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    path = crashed(place, 40)
    data = bytearray(path.read_bytes())
    block = [each for each in blocks_in(bytes(data)) if isinstance(each, Block)][2]
    data[block.body] ^= 1
    path.write_bytes(data)
    found = recover(place)
    assert found.position == 40
    assert [f"bytes {block.start} … {block.end}" in found.news[0]] == [True]
    assert "10 messages are missing, positions 10 … 19" in found.news[1]
    (segment,) = segments_of(tmp_path, "weather")
    assert segment.path.read_bytes()[: len(data)] == data


def test_a_segment_whose_beginning_is_damaged_is_set_aside_and_its_positions_with_it(
    tmp_path: Path,
) -> None:
    place = place_in(tmp_path)
    path = crashed(place, 40)
    data = bytes(512) + path.read_bytes()[512:]
    path.write_bytes(data)
    found = recover(place)
    # Nobody else gets the positions that it had.
    assert 40 <= found.position < 100
    (news,) = found.news
    assert "its beginning is damaged" in news
    (torn,) = place.folder.glob("_torn-*")
    assert torn.read_bytes() == data
    assert segments_of(tmp_path, "weather") == []
    assert recover(place) == RecoveryResult(found.position, [])


def test_no_position_is_taken_from_a_message(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    segment = written(place, 10)
    body = end_block((1 << 63) - 2, 0) + header_of(BlockKind.FRAMES, b"", 1 << 31, 10, 0)
    segment.append(batch_of([message(10, body=body)], 10))
    segment.abandon()
    data = segment.path.read_bytes()
    last = [each for each in blocks_in(data) if isinstance(each, Block)][-1]
    for at in (last.start, last.body):
        damaged = bytearray(data)
        damaged[at] ^= 1
        segment.path.write_bytes(damaged)
        assert recover(place).position in (10, 11)
        for each in segments_of(tmp_path, "weather"):
            each.path.unlink()


def test_a_segment_that_was_ended_but_not_renamed_is(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    segment = written(place, 5)
    segment.finish()
    full = place.full(0, 4)
    full.rename(place.open(0))
    assert recover(place) == RecoveryResult(5, [])
    kinds = [each.kind for each in blocks_in(full.read_bytes()) if isinstance(each, Block)]
    assert kinds == [BlockKind.ABOUT, BlockKind.FRAMES, BlockKind.END]


def test_only_one_writes_to_a_place(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    script = (
        "import pathlib, sys; from weft.journal.segment.file_names import JournalFolder;"
        "from weft.journal.segment.recovery import owned\n"
        "with owned(JournalFolder(pathlib.Path(sys.argv[1]), 'weather', 'london')): pass"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with owned(place):
        assert "BadOption: the journal" in errors_of(command)
        with pytest.raises(BadOption, match="being written by another gateway"), owned(place):
            pass
        with owned(place_in(tmp_path, node="paris")):
            pass
    assert errors_of(command) == ""


def errors_of(command: list[str]) -> str:
    ended = subprocess.run(  # noqa: S603  # ours
        command, capture_output=True, check=False, text=True, timeout=30
    )
    return ended.stderr
