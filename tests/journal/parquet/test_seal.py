import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.journal.desk import ORIGIN, batch_of, message, place_in, spoil_frames, written

from weft.journal.parquet import seal as module
from weft.journal.parquet.seal import NotSealed, Sealed, seal_all
from weft.journal.read.arrow_batches import Range, batches_in
from weft.journal.read.history_pages import JournalPages
from weft.journal.read.messages import history
from weft.journal.read.record import Hole, JournalRecord
from weft.journal.read.sources import FolderShelf
from weft.journal.segment.file_names import segments_of
from weft.journal.segment.recovery import recover
from weft.journal.segment.verify import check_segment
from weft.journal.segment.writer import OpenSegment
from weft.wire.frames import Flag

TIME_NS = 1_700_000_000_000_000_000


def sealed(root: Path) -> list[Sealed | NotSealed]:
    return list(seal_all(root, "weather", "london"))


def test_a_sealed_segment_is_a_table(tmp_path: Path) -> None:
    written(place_in(tmp_path), 30).finish()
    (made,) = sealed(tmp_path)
    assert isinstance(made, Sealed)
    assert (made.messages, made.size) == (30, made.path.stat().st_size)
    assert made.path.parent.name == "node=london"
    assert made.path.parent.parent.name == "date=2023-11-14"
    table = pq.read_table(tmp_path)
    first = table.slice(0, 1).to_pylist()[0]
    stamp = first.pop("timestamp")
    assert (stamp.isoformat(), table.num_rows) == ("2023-11-14T22:13:20+00:00", 30)
    assert first == {
        "subject": "sensors.a",
        "reply": "",
        "payload": b"body 0",
        "origin": ORIGIN,
        "publisher": 3,
        "sequence": 0,
        "position": 0,
        "flags": int(Flag.BARE),
        "time_ns": TIME_NS,
        "service": "weather",
        "date": first["date"],
        "node": "london",
    }


def test_only_full_segments_are_sealed_and_only_once(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 20).finish()
    written(place, 20, first=20).finish()
    written(place, 5, first=40)
    assert [type(each) for each in sealed(tmp_path)] == [Sealed, Sealed]
    assert sealed(tmp_path) == []
    states = [(each.state, each.first, each.last) for each in segments_of(tmp_path, "weather")]
    assert states == [("sealed", 0, 19), ("sealed", 20, 39), ("open", 40, -1)]
    assert [check_segment(each).faults for each in segments_of(tmp_path, "weather")] == [[], [], []]


def test_what_is_sealed_reads_as_before(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    frames = [message(0), message(1, body=bytes(1000)), message(2, b"a.b.c")]
    segment = OpenSegment(place, 0)
    segment.append(batch_of(frames, 0))
    segment.finish()
    written(place, 20, first=3).finish()
    written(place, 5, first=23)
    before = list(history(tmp_path, "weather", "london"))
    sealed(tmp_path)
    assert list(history(tmp_path, "weather", "london")) == before
    assert [each.frame for each in before[:3] if isinstance(each, JournalRecord)] == frames
    middle = list(history(tmp_path, "weather", "london", 2, 24))
    assert middle == before[2:25]
    pages = JournalPages(tmp_path, "weather", "london")
    assert [pages.position_at(TIME_NS + each) for each in (0, 2, 3, 22, 23, 27, 28)] == [
        *(0, 2, 3, 22, 23, 27),
        None,
    ]


def test_large_segments_have_several_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_GROUP_ROWS", 25)
    written(place_in(tmp_path), 100).finish()
    before = list(history(tmp_path, "weather", "london"))
    (made,) = sealed(tmp_path)
    assert pq.ParquetFile(made.path).num_row_groups == 4
    assert list(history(tmp_path, "weather", "london", 41, 58)) == before[41:59]


def test_a_damaged_segment_stays_as_it_is(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 30).finish()
    written(place, 10, first=30).finish()
    path = place.full(0, 29)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    damaged, whole = sealed(tmp_path)
    assert isinstance(damaged, NotSealed)
    assert "the checksum of 10 messages is wrong" in damaged.why
    assert isinstance(whole, Sealed)
    assert path.read_bytes() == data


def test_a_segment_with_a_block_without_whole_frames_stays_as_it_is(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 30).finish()
    spoil_frames(place.full(0, 29), 0)
    (kept,) = sealed(tmp_path)
    assert isinstance(kept, NotSealed)
    assert "a frame of 0 bytes" in kept.why
    assert list(place.folder.glob("_aside-*")) == []


def test_a_segment_with_a_wrong_name_stays_as_it_is(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 30).finish()
    place.full(0, 29).rename(place.full(0, 40))
    (kept,) = sealed(tmp_path)
    assert isinstance(kept, NotSealed)
    assert list(place.folder.glob("_aside-*")) == []


def test_every_flipped_bit_of_a_sealed_file_is_found(tmp_path: Path) -> None:
    written(place_in(tmp_path), 30).finish()
    sealed(tmp_path)
    (segment,) = segments_of(tmp_path, "weather")
    before = segment.path.read_bytes()
    for bit in range(0, 8 * len(before), 97):
        data = bytearray(before)
        data[bit // 8] ^= 1 << bit % 8
        segment.path.write_bytes(data)
        (fault,) = check_segment(segment).faults
        assert (fault.first, fault.last) == (0, 29)


STEPS = ("os.fsync", "shutil.copystat", "pathlib.Path.rename", "pathlib.Path.unlink")


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_loses_nothing(tmp_path: Path, step: str) -> None:
    written(place_in(tmp_path), 30).finish()
    before = list(history(tmp_path, "weather", "london"))
    module_name, name = step.rsplit(".", 1)
    holder = "pathlib.Path" if module_name == "pathlib.Path" else module_name
    script = f"""
import os, shutil, pathlib, signal, sys
from weft.journal.parquet.seal import seal_all
def crash(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
{holder}.{name} = crash
list(seal_all(pathlib.Path(sys.argv[1]), "weather", "london"))
"""
    ended = subprocess.run(  # noqa: S603  # ours
        [sys.executable, "-c", script, str(tmp_path)], check=False, timeout=30
    )
    assert ended.returncode == -signal.SIGKILL
    assert list(history(tmp_path, "weather", "london")) == before
    sealed(tmp_path)
    assert [each.state for each in segments_of(tmp_path, "weather")] == ["sealed"]
    assert list(history(tmp_path, "weather", "london")) == before
    assert os.listdir(tmp_path / "service=weather") == ["date=2023-11-14"]  # noqa: PTH208


def test_sealing_under_a_reader_is_not_noticed(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    for first in (0, 20, 40):
        written(place, 20, first=first).finish()
    reading = history(tmp_path, "weather", "london")
    found = [next(reading) for _ in range(5)]
    sealed(tmp_path)
    found += list(reading)
    assert [each.position for each in found if isinstance(each, JournalRecord)] == list(range(60))
    assert not [each for each in found if isinstance(each, Hole)]


def test_what_a_crash_tore_off_is_no_damage(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    segment = written(place, 25)
    segment.abandon()
    os.truncate(segment.path, segment.size - 3)
    assert recover(place).position == 25
    written(place, 5, first=25).finish()
    before = list(history(tmp_path, "weather", "london"))
    assert [each.position for each in before if isinstance(each, JournalRecord)] == [
        *range(20),
        *range(25, 30),
    ]
    wanted = Range(FolderShelf(tmp_path, "weather"), "london", 3, 30)
    for _ in range(2):
        assert not [
            each for each in history(tmp_path, "weather", "london") if isinstance(each, Hole)
        ]
        rows = [
            position
            for batch in batches_in(wanted, (b">",), may_lack=False)
            for position in batch.column("position").to_pylist()
        ]
        assert rows == [*range(3, 20), *range(25, 30)]
        assert [type(each) for each in sealed(tmp_path)] in ([Sealed, Sealed], [])
    assert list(history(tmp_path, "weather", "london")) == before
    assert [each.state for each in segments_of(tmp_path, "weather")] == ["sealed", "sealed"]


def test_a_segment_of_nothing_but_what_was_torn_off_stays(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    segment = written(place, 10)
    segment.abandon()
    os.truncate(segment.path, segment.size - 3)
    assert recover(place).position == 10
    written(place, 5, first=10).finish()
    assert [type(each) for each in sealed(tmp_path)] == [Sealed]
    assert [each.state for each in segments_of(tmp_path, "weather")] == ["full", "sealed"]
    assert [
        each.position
        for each in history(tmp_path, "weather", "london")
        if isinstance(each, JournalRecord)
    ] == [*range(10, 15)]
