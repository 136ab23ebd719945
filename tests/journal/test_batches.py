from pathlib import Path

import pytest
from tests.journal.desk import batch_of, place_in

from weft.core.frames import Kind, Stamp, encode, stamp_frame
from weft.errors import BadOption
from weft.journal import batches as module
from weft.journal.batches import Batches, Mark, Order, released_rows
from weft.journal.parts import Part, Parts, Piece
from weft.journal.segment import OpenSegment

MARK = Mark(7, 3, 0)


def desk(folder: Path) -> tuple[Parts, Batches]:
    parts = Parts(folder, 100_000)
    return parts, Batches(folder, parts)


def stage(parts: Parts, writer: str = "w", batch: int = 0) -> Order:
    parts.add(Piece(Part(writer, batch, "p"), 0, b"rows", 4, is_last=True))
    return Order(writer, batch, ("p",), (4,))


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
    parts.add(Piece(Part("w", 0, "other"), 0, b"x", 1, is_last=True))
    again = batches.begin(Order("w", 0, ("other",), (1,)), Mark(8, 1, 9))
    assert again == Order("w", 0, ("p",), (4,), (MARK, Mark(8, 1, 9)))
    batches.discard([Part("w", 0, "p")])
    assert list(batches.rows(again)) == [b"rows"]


def test_every_part_has_a_number_of_rows(tmp_path: Path) -> None:
    _, batches = desk(tmp_path)
    with pytest.raises(BadOption, match="2 parts have 1 numbers"):
        batches.begin(Order("w", 0, ("a", "b"), (1,)), MARK)


def test_who_wrote_once_is_forgotten_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, batches = desk(tmp_path)
    for writer in ("once-1", "w"):
        order = stage(parts, writer)
        batches.begin(order, MARK)
        batches.finish(order)
    batches.unfinished()
    assert (tmp_path / "once-1").exists()
    monkeypatch.setattr(module, "ABANDONED_S", -1.0)
    batches.unfinished()
    assert not (tmp_path / "once-1").exists()
    assert batches.begin(stage(parts), MARK) is None


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
    assert released_rows(tmp_path, "weather", "london", (Mark(7, 3, 0),)) == 3
    assert released_rows(tmp_path, "weather", "london", (Mark(7, 3, 1),)) == 2
    both = (Mark(7, 3, 1), Mark(7, 5, 3), Mark(8, 4, 0))
    assert released_rows(tmp_path, "weather", "london", both) == 4
