import os
import queue
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.journal.desk import batch_of, message, place_in

from weft.journal import writer_thread as module
from weft.journal.segment.file_names import JournalFolder, segments_of
from weft.journal.segment.verify import check_segment
from weft.journal.writer_thread import (
    Report,
    Safe,
    Scribe,
    WriteFailed,
    WriterSettings,
)

LIMIT_S = 20


class Office:
    """A scribe, and what it reports."""

    def __init__(self, place: JournalFolder, rules: WriterSettings) -> None:
        self.place = place
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self.scribe = Scribe(place, rules, 0, self._reports.put)
        self.scribe.start()
        self._next = 0

    def write(self, count: int, *, is_awaited: bool = False) -> None:
        frames = [message(self._next + number) for number in range(count)]
        batch = batch_of(frames, self._next)
        batch.is_awaited = is_awaited
        self.scribe.write(batch)
        self._next += count

    def reported(self) -> str:
        """The name of what is reported next, with its number if it has one."""
        report = self._reports.get(timeout=LIMIT_S)
        name = type(report).__name__
        return f"{name} {report.position}" if isinstance(report, Safe) else name

    def problem(self) -> str:
        report = self._reports.get(timeout=LIMIT_S)
        assert isinstance(report, WriteFailed)
        return report.problem

    def end(self) -> None:
        assert self.scribe.end(LIMIT_S)

    def rest(self) -> list[str]:
        found = []
        while not self._reports.empty():
            found.append(self.reported())
        return found

    def messages(self) -> int:
        found = segments_of(self.place.folder.parent, "weather")
        assert [check_segment(each).faults for each in found] == [[] for _ in found]
        return sum(check_segment(each).messages for each in found)


@pytest.fixture
def place(tmp_path: Path) -> JournalFolder:
    return place_in(tmp_path)


def test_what_is_written_becomes_safe(place: JournalFolder) -> None:
    office = Office(place, WriterSettings())
    office.write(3)
    assert [office.reported(), office.reported()] == ["Written", "Safe 3"]
    office.write(2)
    assert [office.reported(), office.reported()] == ["Written", "Safe 5"]
    office.end()
    assert office.rest() == ["Safe 5", "SegmentCompleted"]
    assert office.messages() == 5


def test_what_is_awaited_is_made_safe_at_once(place: JournalFolder) -> None:
    office = Office(place, WriterSettings(sync_s=1000.0))
    for number in range(1, 4):
        office.write(1, is_awaited=True)
        assert [office.reported(), office.reported()] == ["Written", f"Safe {number}"]
    office.write(1)
    assert office.reported() == "Written"
    office.end()
    assert office.rest() == ["Safe 4", "SegmentCompleted"]


def test_much_is_made_safe_at_once_and_little_after_a_while(
    place: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = queue.SimpleQueue[int]()
    sync = os.fdatasync

    def noted(fd: int) -> None:
        synced.put(fd)
        sync(fd)

    monkeypatch.setattr(os, "fdatasync", noted)
    office = Office(place, WriterSettings(sync_s=1000.0, sync_bytes=10_000))
    office.write(1)
    assert [office.reported(), office.reported()] == ["Written", "Safe 1"]
    office.write(1)
    assert office.reported() == "Written"
    office.write(300)
    assert [office.reported(), office.reported()] == ["Written", "Safe 302"]
    office.end()
    # The beginning, the first message, the many, the end.
    assert synced.qsize() == 4


@pytest.mark.parametrize("sync", ["interval", "none"])
def test_safe_may_mean_written(place: JournalFolder, sync: module.Sync) -> None:
    office = Office(place, WriterSettings(sync=sync, interval_s=0.001))
    office.write(3)
    assert [office.reported(), office.reported()] == ["Safe 3", "Written"]
    office.end()
    assert office.rest() == ["Safe 3", "SegmentCompleted"]


def test_a_full_segment_is_followed_by_another(place: JournalFolder) -> None:
    office = Office(place, WriterSettings(segment_bytes=500))
    for _ in range(6):
        office.write(20)
        while office.reported() != "SegmentCompleted":
            pass
    office.end()
    found = segments_of(place.folder.parent, "weather")
    assert [(each.state, each.first, each.last) for each in found] == [
        ("full", 20 * number, 20 * number + 19) for number in range(6)
    ]
    assert office.messages() == 120


def test_an_old_segment_is_ended_even_if_nothing_comes(place: JournalFolder) -> None:
    office = Office(place, WriterSettings(segment_s=0.01))
    office.write(1)
    while office.reported() != "SegmentCompleted":
        pass
    (found,) = segments_of(place.folder.parent, "weather")
    assert found.state == "full"
    office.end()


def test_a_segment_ends_with_its_day(place: JournalFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    days = iter(["2026-11-16"])
    monkeypatch.setattr(module, "day_of", lambda _: next(days, "2026-11-17"))
    monkeypatch.setattr("weft.journal.segment.writer.day_of", lambda _: "2026-11-16")
    office = Office(place, WriterSettings())
    office.write(1)
    assert [office.reported(), office.reported()] == ["Written", "Safe 1"]
    office.write(1)
    while office.reported() != "SegmentCompleted":
        pass
    office.end()
    assert office.messages() == 2


@contextmanager
def small_disk() -> Iterator[None]:
    """No file may be larger than 4,096 bytes: a write beyond it fails, as on a full disk.

    Not for longer than that: what pytest itself says may go to a larger file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_batch_that_the_disk_refuses_is_written_when_it_no_longer_does(
    place: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    office = Office(place, WriterSettings())
    office.write(10)
    assert [office.reported(), office.reported()] == ["Written", "Safe 10"]
    with small_disk():
        office.write(100)
        assert office.problem() == "File too large"
        assert office.problem() == "File too large"
    while (name := office.reported()) == "WriteFailed":
        pass
    assert [name, office.reported(), office.reported()] == ["Recovered", "Written", "Safe 110"]
    office.end()
    assert office.messages() == 110


def test_a_failed_sync_gives_the_segment_up(
    place: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    office = Office(place, WriterSettings())
    office.write(1)
    assert [office.reported(), office.reported()] == ["Written", "Safe 1"]
    sync = os.fdatasync
    failures = iter([OSError(5, "Input/output error")])

    def fdatasync(fd: int) -> None:
        for error in failures:
            raise error
        sync(fd)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    office.write(1)
    assert office.reported() == "Written"
    assert office.problem() == "Input/output error"
    assert [office.reported(), office.reported()] == ["Recovered", "Safe 2"]
    office.write(1)
    assert [office.reported(), office.reported()] == ["Written", "Safe 3"]
    office.end()
    states = [each.state for each in segments_of(place.folder.parent, "weather")]
    assert sorted(states) == ["full", "open"]
    assert office.messages() == 3


def test_it_ends_although_the_disk_refuses(place: JournalFolder) -> None:
    office = Office(place, WriterSettings())
    with small_disk():
        office.write(100)
        assert office.problem() == "File too large"
        office.end()
