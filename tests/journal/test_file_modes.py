"""Files of a journal are not for every user of the machine, whatever the umask allows."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journal.desk import place_in, written

from weft.journal.parquet.compact import merge_day
from weft.journal.parquet.seal import seal_all
from weft.journal.segment.blocks import Block, blocks_in
from weft.journal.segment.recovery import recover
from weft.journal.staging.batches import BatchCommit, Batches, PublishedMark
from weft.journal.staging.parts import RowChunk, StagedPart, StagedParts


@pytest.fixture(autouse=True)
def generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes_in(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): stat.filemode(path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def assert_only_owner_and_group(folder: Path, count: int) -> None:
    modes = modes_in(folder)
    assert len(modes) >= count
    assert set(modes.values()) == {"-rw-r-----"}, modes


def test_a_segment_that_is_sealed_and_merged(tmp_path: Path) -> None:
    for first in (0, 10):
        written(place_in(tmp_path), 10, first).finish()
    assert_only_owner_and_group(tmp_path, 2)
    list(seal_all(tmp_path, "weather", "london"))
    assert_only_owner_and_group(tmp_path, 2)
    assert list(merge_day(place_in(tmp_path), "2023-11-14", 1 << 20))
    assert_only_owner_and_group(tmp_path, 1)


def test_the_torn_end_of_a_segment(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    segment = written(place, 25)
    segment.abandon()
    blocks = [each for each in blocks_in(segment.path.read_bytes()) if isinstance(each, Block)]
    os.truncate(segment.path, blocks[-1].end - 3)
    recover(place)
    assert list(place.folder.glob("_torn-*"))
    assert_only_owner_and_group(tmp_path, 3)


def test_staged_rows_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "staged"
    parts = StagedParts(folder, 10_000)
    parts.add(RowChunk(StagedPart("w", 0, "p"), 0, b"rows", 4, is_last=True))
    assert Batches(folder, parts).begin(BatchCommit("w", 0, ("p",), (4,)), PublishedMark(7, 3, 0))
    assert len(modes_in(folder)) == 2
    assert set(modes_in(folder).values()) == {"-rw-------"}
    assert {stat.filemode(each.stat().st_mode) for each in (folder, folder / "w")} == {"drwx------"}
