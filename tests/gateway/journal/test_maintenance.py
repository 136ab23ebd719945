import asyncio
import logging
import os
from pathlib import Path

import pytest
from tests.journal.desk import place_in, written

from weft.gateway.config.settings import JournalSettings
from weft.gateway.journal import maintenance as module
from weft.gateway.journal.maintenance import Tidying
from weft.journal.segment.file_names import segments_of


def settings(**other: object) -> JournalSettings:
    return JournalSettings(patterns=(">",), **other)  # type: ignore[arg-type]  # as a test says


async def until(root: Path, states: list[str]) -> None:
    while [each.state for each in segments_of(root, "weather")] != states:
        await asyncio.sleep(0.01)


async def test_it_is_done_at_the_start_and_when_a_segment_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    place = place_in(tmp_path)
    written(place, 20).finish()
    tidying = Tidying(tmp_path, "weather", "london", settings(compact="never"))
    await until(tmp_path, ["sealed"])
    written(place, 20, first=20).finish()
    tidying.segment_ended()
    await until(tmp_path, ["sealed", "sealed"])
    while caplog.text.count("journal: sealed 20 messages") < 2:
        await asyncio.sleep(0.01)
    await tidying.close()


async def test_small_files_of_a_day_that_is_over_are_merged_unless_they_are_to_stay(
    tmp_path: Path,
) -> None:
    place = place_in(tmp_path)
    for first in range(0, 80, 20):
        written(place, 20, first).finish()
    tidying = Tidying(tmp_path, "weather", "london", settings())
    await until(tmp_path, ["sealed"])
    await tidying.close()
    assert segments_of(tmp_path, "weather")[0].last == 79


async def test_it_is_left_out_if_there_is_nothing_to_do(tmp_path: Path) -> None:
    written(place_in(tmp_path), 20).finish()
    tidying = Tidying(tmp_path, "weather", "london", settings(seal="never"))
    tidying.segment_ended()
    await asyncio.wait([tidying._task])
    await tidying.close()
    assert [each.state for each in segments_of(tmp_path, "weather")] == ["full"]


async def test_what_gets_old_is_removed_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGING_S", 0.01)
    written(place_in(tmp_path), 20).finish()
    tidying = Tidying(tmp_path, "weather", "london", settings(seal="never", keep_s=0.5))
    await until(tmp_path, [])
    await tidying.close()


async def test_what_cannot_be_tidied_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = place_in(tmp_path)
    place.full(0, 19).mkdir()
    tidying = Tidying(tmp_path, "weather", "london", settings())
    while "journal: maintenance failed: IsADirectoryError" not in caplog.text:
        await asyncio.sleep(0.01)
    place.full(0, 19).rmdir()
    place.full(0, 19).write_bytes(b"no segment")
    tidying.segment_ended()
    while "journal: cannot seal" not in caplog.text:
        await asyncio.sleep(0.01)
    await tidying.close()


async def test_it_ends_at_once_whatever_it_does(tmp_path: Path) -> None:
    written(place_in(tmp_path), 20).finish()
    tidying = Tidying(tmp_path, "weather", "london", settings())
    await asyncio.sleep(0)
    await tidying.close()
    assert len(segments_of(tmp_path, "weather")) == 1


async def test_a_clock_that_jumps_removes_nothing_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "AGING_S", 0.01)
    caplog.set_level(logging.INFO)
    place = place_in(tmp_path)
    written(place, 20).finish()
    year_s = 365 * 86_400
    old = place.full(0, 19).stat().st_mtime - year_s
    os.utime(place.full(0, 19), (old, old))
    tidying = Tidying(tmp_path, "weather", "london", settings(keep_s=86_400, compact="never"))
    # Sealing comes first; what is removed goes in the same run.
    await until(tmp_path, ["sealed"])
    tidying.segment_ended()
    while "journal: sealed 20 messages" not in caplog.text:
        await asyncio.sleep(0.01)
    await tidying.close()
    assert "no segment is removed by age for 3600 s" in caplog.text
    assert [each.state for each in segments_of(tmp_path, "weather")] == ["sealed"]
