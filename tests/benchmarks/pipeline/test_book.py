from pathlib import Path

import pytest

from benchmarks.pipeline import book
from weft.journal.parquet.seal import Sealed, seal_all
from weft.journal.read.arrow_batches import Range, batches_in
from weft.journal.read.sources import FolderShelf
from weft.journal.segment.file_names import segments_of
from weft.wire.message.message import Message


@pytest.mark.parametrize("is_open", [False, True])
def test_what_is_written_is_a_journal_of_messages(tmp_path: Path, is_open: bool) -> None:
    told: list[int] = []
    book.write(tmp_path / "journal", 1200, told.append, is_open=is_open)
    assert told[-1] == 1200
    (segment,) = segments_of(tmp_path / "journal", book.SERVICE)
    assert segment.state == ("open" if is_open else "full")
    wanted = Range(FolderShelf(tmp_path / "journal", book.SERVICE), book.NODE, 0, 1200)
    rows = [
        row for batch in batches_in(wanted, (b">",), may_lack=False) for row in batch.to_pylist()
    ]
    assert [row["position"] for row in rows] == list(range(1200))
    messages = [Message.from_body(row["payload"]) for row in rows]
    assert [message["count"] for message in messages] == list(range(1200))
    assert {len(message) for message in messages} == {6}
    assert len({row["subject"] for row in rows}) == len(book.CITIES) * book.STATIONS
    assert 150 < segment.path.stat().st_size / 1200 < 250


def test_full_segments_are_as_large_as_a_gateway_makes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.pipeline.book.SEGMENT_BYTES", 100_000)
    book.write(tmp_path / "journal", 3000, lambda _: None)
    assert len(segments_of(tmp_path / "journal", book.SERVICE)) == 3
    sealed = list(seal_all(tmp_path / "journal", book.SERVICE, book.NODE))
    assert sum(each.messages for each in sealed if isinstance(each, Sealed)) == 3000
