import os
from pathlib import Path

import pytest
from tests.journal.desk import batch_of, place_in

from weft.errors import BadOption, TooMany
from weft.journal.segment.writer import OpenSegment
from weft.journal.staging import batches as module
from weft.journal.staging import parts as parts_module
from weft.journal.staging.batches import BatchCommit, Batches, PublishedMark, Removed, released_rows
from weft.journal.staging.parts import ABANDONED_S, RowChunk, StagedPart, StagedParts
from weft.wire.frames import Kind, Stamp, encode, stamp_frame

MARK = PublishedMark(7, 3, 0)


def desk(folder: Path) -> tuple[StagedParts, Batches]:
    parts = StagedParts(folder, 100_000)
    return parts, Batches(folder, parts)


def stage(parts: StagedParts, writer: str = "w", batch: int = 0) -> BatchCommit:
    parts.add(RowChunk(StagedPart(writer, batch, "p"), 0, b"rows", 4, is_last=True))
    return BatchCommit(writer, batch, ("p",), (4,))


def test_a_batch_is_on_its_way_until_it_is_out(tmp_path: Path) -> None:
    parts, batches = desk(tmp_path)
    order = stage(parts)
    begun = batches.begin(order, MARK)
    assert begun is not None
    assert begun.marks == (MARK,)
    assert desk(tmp_path)[1].unfinished() == [begun]
    assert list(batches.rows(begun)) == [b"rows"]
    batches.finish(begun)
    assert desk(tmp_path)[1].unfinished() == []
    assert batches.begin(order, MARK) is None


def test_what_is_on_its_way_is_neither_replaced_nor_discarded(tmp_path: Path) -> None:
    parts, batches = desk(tmp_path)
    batches.begin(stage(parts), MARK)
    parts.add(RowChunk(StagedPart("w", 0, "other"), 0, b"x", 1, is_last=True))
    again = batches.begin(BatchCommit("w", 0, ("other",), (1,)), PublishedMark(8, 1, 9))
    assert again == BatchCommit("w", 0, ("p",), (4,), (MARK, PublishedMark(8, 1, 9)))
    batches.discard([StagedPart("w", 0, "p")])
    assert list(batches.rows(again)) == [b"rows"]


def test_every_part_has_a_number_of_rows(tmp_path: Path) -> None:
    _, batches = desk(tmp_path)
    with pytest.raises(BadOption, match="2 parts have 1 numbers"):
        batches.begin(BatchCommit("w", 0, ("a", "b"), (1,)), MARK)


def write_once(parts: StagedParts, batches: Batches, writer: str) -> None:
    order = stage(parts, writer)
    begun = batches.begin(order, MARK)
    assert begun is not None
    batches.finish(begun)


def age(folder: Path, by_s: float) -> None:
    """Make everything in a folder older."""
    for path in (*folder.rglob("*"), folder):
        then = path.stat().st_mtime - by_s
        os.utime(path, (then, then))


def test_a_writer_of_one_batch_is_forgotten_a_while_after_it(tmp_path: Path) -> None:
    parts, batches = desk(tmp_path)
    for writer in ("once-1", "w"):
        write_once(parts, batches, writer)
    assert batches.tidy() == Removed(0, 0)
    age(tmp_path, module.FORGOTTEN_S)
    assert batches.tidy() == Removed(0, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w"]
    # Whoever may come back is remembered: its batch is out already.
    assert batches.begin(stage(parts), MARK) is None


def test_a_writer_that_ends_is_forgotten_at_once(tmp_path: Path) -> None:
    parts, batches = desk(tmp_path)
    write_once(parts, batches, "once-1")
    stage(parts, "once-2")
    for writer in ("once-1", "once-2", "never-there"):
        batches.end(writer)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BadOption):
        batches.end("..")


def test_a_writer_whose_batch_is_on_its_way_is_never_forgotten(tmp_path: Path) -> None:
    parts, batches = desk(tmp_path)
    begun = batches.begin(stage(parts, "once-1"), MARK)
    age(tmp_path, module.IDLE_S + ABANDONED_S)
    batches.end("once-1")
    assert batches.tidy(is_full=True) == Removed(0, 0)
    assert desk(tmp_path)[1].unfinished() == [begun]


def test_abandoned_rows_and_then_their_writer_are_removed_by_time(tmp_path: Path) -> None:
    parts, batches = desk(tmp_path)
    stage(parts, "once-1")
    age(tmp_path, module.FORGOTTEN_S)
    assert batches.tidy() == Removed(0, 0)
    age(tmp_path, ABANDONED_S)
    assert batches.tidy() == Removed(1, 0)
    age(tmp_path, module.FORGOTTEN_S)
    assert batches.tidy() == Removed(0, 1)
    assert list(tmp_path.iterdir()) == []


def test_more_can_write_than_can_be_known_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "WRITERS_MAX", 3)
    for number in range(10):
        # Each in another process: the limit outlives none of them.
        parts, batches = desk(tmp_path)
        batches.make_room(f"once-{number}")
        write_once(parts, batches, f"once-{number}")
        age(tmp_path, module.FORGOTTEN_S)
    assert len(list(tmp_path.iterdir())) <= 3


def test_the_longest_idle_queries_are_forgotten_at_the_limit_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "WRITERS_MAX", 2)
    monkeypatch.setattr(module, "_FULL_S", 0.0)
    parts, batches = desk(tmp_path)
    write_once(parts, batches, "old")
    age(tmp_path, module.IDLE_S)
    write_once(parts, batches, "young")
    assert batches.tidy() == Removed(0, 0)
    batches.make_room("young")
    assert (tmp_path / "old").exists()
    batches.make_room("new")
    write_once(parts, batches, "new")
    with pytest.raises(TooMany, match="which is the limit"):
        stage(parts, "another")
    with pytest.raises(TooMany, match="which is the limit"):
        batches.begin(BatchCommit("another", 0, (), ()), MARK)


def test_the_journal_says_how_many_rows_it_has(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    segment = OpenSegment(place, 0)
    frames = []
    for number, publisher in enumerate([3, 4, 3, 5, 3]):
        frame = bytearray(encode(Kind.MESSAGE, b"a", b""))
        stamp_frame(frame, 0, Stamp(7, publisher, number))
        frames.append(bytes(frame))
    segment.append(batch_of(frames, 0, 2))
    segment.abandon()
    assert released_rows(tmp_path, "weather", "london", ()) == 0
    assert released_rows(tmp_path, "weather", "london", (PublishedMark(7, 3, 0),)) == 3
    assert released_rows(tmp_path, "weather", "london", (PublishedMark(7, 3, 1),)) == 2
    both = (PublishedMark(7, 3, 1), PublishedMark(7, 5, 3), PublishedMark(8, 4, 0))
    assert released_rows(tmp_path, "weather", "london", both) == 4
