from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.journal.desk import batch_of, message, place_in, spoil_frames, written

from weft.journal.parquet.compact import merge_day
from weft.journal.parquet.seal import seal_all
from weft.journal.read import arrow_batches as module
from weft.journal.read import sources
from weft.journal.read.arrow_batches import Lost, Range, batches_in
from weft.journal.read.sources import FolderShelf
from weft.journal.segment.blocks import Block, blocks_in
from weft.journal.segment.file_names import Segment, segments_of


def read(root: Path, first: int, end: int, *patterns: bytes, may_lack: bool = False) -> list[int]:
    wanted = Range(FolderShelf(root, "weather"), "london", first, end)
    found = batches_in(wanted, patterns or (b">",), may_lack=may_lack)
    return [position for batch in found for position in batch.column("position").to_pylist()]


def three(root: Path) -> None:
    place = place_in(root)
    written(place, 30).finish()
    list(seal_all(root, "weather", "london"))
    written(place, 30, first=30).finish()
    written(place, 30, first=60)


@pytest.mark.parametrize(("first", "end"), [(0, 90), (5, 6), (29, 31), (12, 78), (60, 90), (7, 7)])
def test_any_stretch_is_read_exactly(tmp_path: Path, first: int, end: int) -> None:
    three(tmp_path)
    assert read(tmp_path, first, end) == list(range(first, end))


def test_large_stretches_come_in_several_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS", 7)
    three(tmp_path)
    wanted = Range(FolderShelf(tmp_path, "weather"), "london", 3, 88)
    found = list(batches_in(wanted, (b">",), may_lack=False))
    assert len(found) > 8
    assert [row for each in found for row in each.column("position").to_pylist()] == [*range(3, 88)]


def test_what_does_not_match_is_left_out(tmp_path: Path) -> None:
    three(tmp_path)
    assert read(tmp_path, 0, 90, b"alarms.>") == []
    assert read(tmp_path, 0, 90, b"alarms.>", b"sensors.*") == list(range(90))


@pytest.mark.parametrize("pattern", [b">", b"sensors.a"])
def test_columns_that_nobody_asks_for_are_not_read(tmp_path: Path, pattern: bytes) -> None:
    place = place_in(tmp_path)
    written(place, 30).finish()
    list(seal_all(tmp_path, "weather", "london"))
    wanted = Range(FolderShelf(tmp_path, "weather"), "london", 3, 9)
    (batch,) = batches_in(wanted, (pattern,), may_lack=False, columns=["flags"])
    assert {"flags", "position"} <= set(batch.schema.names)
    assert "payload" not in batch.schema.names
    assert batch.column("position").to_pylist() == [3, 4, 5, 6, 7, 8]


def test_row_groups_beside_the_stretch_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.journal.parquet.seal._GROUP_ROWS", 10)
    place = place_in(tmp_path)
    written(place, 60).finish()
    list(seal_all(tmp_path, "weather", "london"))
    asked: list[list[int]] = []
    real = pq.ParquetFile.iter_batches

    def noted(file: Any, rows: int, groups: list[int], columns: list[str]) -> Any:
        asked.append(groups)
        return real(file, rows, groups, columns)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    assert read(tmp_path, 19, 31) == list(range(19, 31))
    assert asked == [[1, 2, 3]]


def test_damage_is_a_loss(tmp_path: Path) -> None:
    three(tmp_path)
    path = segments_of(tmp_path, "weather")[1].path
    data = bytearray(path.read_bytes())
    block = [each for each in blocks_in(bytes(data)) if isinstance(each, Block)][2]
    data[block.body] ^= 1
    path.write_bytes(data)
    with pytest.raises(Lost, match=r"positions 40 … 49 of node london"):
        read(tmp_path, 0, 90)
    # It costs what is damaged, wherever one begins and ends.
    assert read(tmp_path, 0, 90, may_lack=True) == [*range(40), *range(50, 90)]
    assert read(tmp_path, 45, 52, may_lack=True) == [50, 51]
    assert read(tmp_path, 35, 45, may_lack=True) == list(range(35, 40))
    assert read(tmp_path, 0, 40) == list(range(40))
    assert read(tmp_path, 50, 90) == list(range(50, 90))


@pytest.mark.parametrize("change", ["flipped", "cut"])
def test_a_damaged_sealed_segment_is_a_loss_of_what_it_had(tmp_path: Path, change: str) -> None:
    three(tmp_path)
    path = segments_of(tmp_path, "weather")[0].path
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data if change == "flipped" else data[: len(data) // 2])
    with pytest.raises(Lost, match=r"positions 0 … 29 of node london .* its checksum is"):
        read(tmp_path, 0, 90)
    assert read(tmp_path, 0, 90, may_lack=True) == list(range(30, 90))
    assert read(tmp_path, 30, 90) == list(range(30, 90))


def test_a_full_segment_ends_where_a_later_one_begins(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 30).finish()
    later = written(place, 0, first=20)
    later.append(batch_of([message(100 + number) for number in range(20)], 20))
    wanted = Range(FolderShelf(tmp_path, "weather"), "london", 0, 40)
    batches = list(batches_in(wanted, (b">",), may_lack=False))
    sequences = [each for batch in batches for each in batch.column("sequence").to_pylist()]
    assert sequences == [*range(20), *range(100, 120)]


@pytest.mark.parametrize("first", [40, 45])
def test_a_block_without_whole_frames_is_an_error(tmp_path: Path, first: int) -> None:
    three(tmp_path)
    spoil_frames(segments_of(tmp_path, "weather")[1].path, 1)
    with pytest.raises(ValueError, match=r"frame|message"):
        read(tmp_path, first, 49)
    assert read(tmp_path, 0, 40) == list(range(40))


def test_what_was_removed_or_never_was_is_a_loss(tmp_path: Path) -> None:
    three(tmp_path)
    segments_of(tmp_path, "weather")[0].path.unlink()
    with pytest.raises(Lost, match=r"positions 10 … 29"):
        read(tmp_path, 10, 90)
    assert read(tmp_path, 10, 40, may_lack=True) == list(range(30, 40))
    with pytest.raises(Lost, match=r"positions 90 … 99"):
        read(tmp_path, 80, 100)


def test_a_segment_that_is_sealed_meanwhile_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(tmp_path)
    listed = segments_of(tmp_path, "weather", "london")
    stale = iter([listed, listed, listed])

    def once_stale(root: Path, service: str, node: str) -> list[Segment]:
        return next(stale, None) or segments_of(root, service, node)

    list(seal_all(tmp_path, "weather", "london"))
    monkeypatch.setattr(sources, "segments_of", once_stale)
    assert read(tmp_path, 0, 90) == list(range(90))


def test_one_that_was_left_open_ends_where_the_next_begins(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 20).abandon()
    written(place, 20, first=20)
    assert read(tmp_path, 0, 40) == list(range(40))
    assert read(tmp_path, 5, 25) == list(range(5, 25))


def test_a_segment_that_is_never_found_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(tmp_path)
    listed = segments_of(tmp_path, "weather", "london")
    listed[1].path.unlink()
    monkeypatch.setattr(sources, "segments_of", lambda *_: listed)
    with pytest.raises(FileNotFoundError):
        read(tmp_path, 0, 90)


def test_the_rows_are_the_messages(tmp_path: Path) -> None:
    three(tmp_path)
    wanted = Range(FolderShelf(tmp_path, "weather"), "london", 31, 32)
    (batch,) = batches_in(wanted, (b">",), may_lack=False)
    (row,) = batch.to_pylist()
    assert (row["sequence"], row["payload"]) == (31, b"body 31")
    assert len(message(31)) == 32 + len(row["subject"]) + len(row["payload"])


class Counted(FolderShelf):
    """A folder that counts how often its segments are listed."""

    listed = 0

    def segments(self, node: str) -> list[Segment]:
        type(self).listed += 1
        return super().segments(node)


def test_the_segments_of_a_stretch_are_listed_once(tmp_path: Path) -> None:
    for first in range(0, 200, 10):
        written(place_in(tmp_path), 10, first).finish()
    list(seal_all(tmp_path, "weather", "london"))
    Counted.listed = 0
    wanted = Range(Counted(tmp_path, "weather"), "london", 0, 200)
    batches = list(batches_in(wanted, (b">",), may_lack=False))
    assert sum(batch.num_rows for batch in batches) == 200
    assert Counted.listed == 1


def test_segments_that_get_other_names_while_they_are_read_are_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS", 5)
    for first in range(0, 120, 10):
        written(place_in(tmp_path), 10, first).finish()
    wanted = Range(FolderShelf(tmp_path, "weather"), "london", 0, 140)
    found = batches_in(wanted, (b">",), may_lack=False)
    positions = next(found).column("position").to_pylist()
    list(seal_all(tmp_path, "weather", "london"))
    positions += next(found).column("position").to_pylist()
    list(merge_day(place_in(tmp_path), "2023-11-14", 1 << 20))
    # What was written since is found, too.
    written(place_in(tmp_path), 20, first=120)
    positions += [row for each in found for row in each.column("position").to_pylist()]
    assert positions == list(range(140))
