import os
from pathlib import Path

import pytest
from tests.journal.desk import place_in, written

from weft.journal.maintenance import compacted
from weft.journal.parquet import compaction_plan as module
from weft.journal.parquet.compact import merge_day
from weft.journal.parquet.compaction_plan import TARGET_BYTES, days_due, mark_done, target_bytes
from weft.journal.parquet.seal import seal_all
from weft.journal.retention import Keep
from weft.journal.segment.file_names import segments_of

DAY = "2023-11-14"
ALL = Keep()


def sealed(root: Path, *firsts: int) -> None:
    """Write and seal segments of ten messages."""
    for first in firsts:
        written(place_in(root), 10, first).finish()
    list(seal_all(root, "weather", "london"))


def merge(root: Path) -> None:
    for day in days_due(place_in(root), ALL):
        list(merge_day(place_in(root), day, TARGET_BYTES))
        mark_done(place_in(root), day)


def test_a_day_that_is_over_is_due_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    sealed(tmp_path, 0, 10, 20)
    assert days_due(place_in(tmp_path), ALL) == [DAY]
    merge(tmp_path)
    assert days_due(place_in(tmp_path), ALL) == []
    sealed(tmp_path, 30)
    assert days_due(place_in(tmp_path), ALL) == [DAY]
    merge(tmp_path)
    assert [(each.first, each.last) for each in segments_of(tmp_path, "weather")] == [(0, 39)]


def test_segments_that_cannot_be_joined_are_not_due(tmp_path: Path) -> None:
    sealed(tmp_path, 0, 20, 40)
    assert days_due(place_in(tmp_path), ALL) == []


def test_a_day_whose_segments_cannot_be_read_is_not_tried_again_and_again(tmp_path: Path) -> None:
    sealed(tmp_path, 0, 10)
    path = segments_of(tmp_path, "weather")[0].path
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    (line,) = compacted(place_in(tmp_path), ALL)
    assert line.startswith(f"cannot merge {path}: ")
    assert list(compacted(place_in(tmp_path), ALL)) == []


def test_of_today_many_are_merged_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "day_of", lambda _: DAY)
    monkeypatch.setattr(module, "TODAY_LEAST", 4)
    sealed(tmp_path, 0, 10, 20)
    assert days_due(place_in(tmp_path), ALL) == []
    sealed(tmp_path, 30)
    assert days_due(place_in(tmp_path), ALL) == [DAY]


def test_retention_stays_as_fine_as_it_was_asked_to_be(tmp_path: Path) -> None:
    sealed(tmp_path, 0, 10)
    assert days_due(place_in(tmp_path), Keep(age_s=3600.0)) == []
    assert days_due(place_in(tmp_path), Keep(age_s=30 * 86_400.0)) == [DAY]
    assert (target_bytes(ALL), target_bytes(Keep(1 << 20))) == (TARGET_BYTES, 1 << 16)
    assert days_due(place_in(tmp_path), Keep(1000)) == []


def test_the_files_are_as_old_as_their_messages(tmp_path: Path) -> None:
    sealed(tmp_path, 0, 10)
    for each in segments_of(tmp_path, "weather"):
        os.utime(each.path, (1_700_000_000, 1_700_000_000))
    merge(tmp_path)
    (segment,) = segments_of(tmp_path, "weather")
    assert segment.path.stat().st_mtime == 1_700_000_000
