from pathlib import Path

import pytest
from tests.journal.desk import batch_of, message, place_in, spoil_frames, written

from weft.broker.journal.batcher import ARRIVED
from weft.journal.read import history_pages as module
from weft.journal.read.history_pages import JournalPage, JournalPages, PageRequest
from weft.journal.segment.writer import OpenSegment
from weft.wire.frames import Decoder, parse

TIME_NS = 1_700_000_000_000_000_000
ALL = (b">",)


@pytest.fixture
def pages(tmp_path: Path) -> JournalPages:
    place = place_in(tmp_path)
    written(place, 20).finish()
    written(place, 20, first=20).finish()
    written(place, 5, first=40)
    return JournalPages(tmp_path, "weather", "london")


def numbers(data: bytes) -> list[int]:
    decoder = Decoder(1 << 30)
    decoder.feed(data)
    return [parse(frame).sequence for frame in iter(decoder.next_frame, None)]


def read(pages: JournalPages, first: int, until: int, max_bytes: int) -> list[int]:
    """Page after page; each as large as it may be."""
    found: list[int] = []
    while first < until:
        page = pages.page(PageRequest(ALL, first, until, max_bytes))
        assert page.next > first
        found += numbers(page.frames)
        first = page.next
    return found


@pytest.mark.parametrize("max_bytes", [60, 100, 1000, 100_000])
def test_page_after_page_is_the_whole_journal(pages: JournalPages, max_bytes: int) -> None:
    assert read(pages, 0, 45, max_bytes) == list(range(45))
    assert read(pages, 17, 42, max_bytes) == list(range(17, 42))


def test_a_page_is_no_larger_than_it_may_be_but_for_its_last_message(pages: JournalPages) -> None:
    page = pages.page(PageRequest(ALL, 0, 45, 100))
    assert 100 <= len(page.frames) < 100 + len(message(0))


def test_only_what_is_wanted_is_in_it(tmp_path: Path) -> None:
    segment = OpenSegment(place_in(tmp_path), 0)
    frames = [message(n, b"alarms.a" if n % 3 else b"sensors.a") for n in range(30)]
    segment.append(batch_of(frames, 0))
    pages = JournalPages(tmp_path, "weather", "london")
    page = pages.page(PageRequest((b"alarms.*", b"none"), 0, 30, 1 << 20))
    assert numbers(page.frames) == [n for n in range(30) if n % 3]
    assert (page.next, page.left, page.missing) == (30, 0, 0)


def test_no_page_takes_long_to_look_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCAN_MAX_BYTES", 500)
    written(place_in(tmp_path), 40)
    pages = JournalPages(tmp_path, "weather", "london")
    page = pages.page(PageRequest((b"none",), 0, 40, 1 << 20))
    assert page.frames == b""
    assert 0 < page.next < 40


def test_what_is_missing_is_counted(pages: JournalPages, tmp_path: Path) -> None:
    (path,) = tmp_path.glob("*/_full-*20-*")
    path.unlink()
    page = pages.page(PageRequest(ALL, 15, 45, 1 << 20))
    assert numbers(page.frames) == [*range(15, 20), *range(40, 45)]
    assert page.missing == 20


def test_a_reader_at_the_end_finds_what_comes_later(tmp_path: Path) -> None:
    segment = written(place_in(tmp_path), 5)
    pages = JournalPages(tmp_path, "weather", "london")
    assert pages.page(PageRequest(ALL, 0, 99, 1 << 20)).next == 5
    assert pages.page(PageRequest(ALL, 5, 99, 1 << 20)) == JournalPage(b"", 5, 0, 0)
    segment.append(batch_of([message(5)], 5))
    assert numbers(pages.page(PageRequest(ALL, 5, 99, 1 << 20)).frames) == [5]


def test_a_message_larger_than_a_page_comes_in_parts(tmp_path: Path) -> None:
    large = message(1, body=bytes(1000))
    segment = OpenSegment(place_in(tmp_path), 0)
    segment.append(batch_of([message(0), large, message(2)], 0))
    pages = JournalPages(tmp_path, "weather", "london")
    first = pages.page(PageRequest(ALL, 0, 3, 60))
    assert (numbers(first.frames), first.next) == ([0], 1)
    parts = b""
    page = pages.page(PageRequest(ALL, 1, 3, 300))
    while page.left:
        assert (page.next, len(page.frames)) == (1, 300)
        parts += page.frames
        page = pages.page(PageRequest(ALL, 1, 3, 300, len(parts)))
    assert parts + page.frames == large
    assert numbers(pages.page(PageRequest(ALL, page.next, 3, 300)).frames) == [2]


@pytest.mark.parametrize("max_bytes", [10, 1 << 20], ids=["in parts", "whole"])
def test_what_arrived_comes_as_it_was_sent(tmp_path: Path, max_bytes: int) -> None:
    sent = message(0)
    arrived = sent[:5] + bytes([sent[5] | ARRIVED]) + sent[6:]
    OpenSegment(place_in(tmp_path), 0).append(batch_of([arrived], 0))
    pages = JournalPages(tmp_path, "weather", "london")
    frames = b""
    while len(frames) < len(sent):
        frames += pages.page(PageRequest(ALL, 0, 1, max_bytes, len(frames))).frames
    assert frames == sent


def test_many_readers_take_turns(pages: JournalPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_READERS_MAX", 2)
    places = dict.fromkeys(range(5), 0)
    found: dict[int, list[int]] = {reader: [] for reader in places}
    while min(places.values()) < 45:
        for reader, first in places.items():
            if first < 45:
                page = pages.page(PageRequest((b">", b"%d" % reader), first, 45, 150))
                found[reader] += numbers(page.frames)
                places[reader] = page.next
    assert list(found.values()) == [list(range(45))] * 5


def test_a_time_is_found(pages: JournalPages, tmp_path: Path) -> None:
    for position in (0, 1, 9, 10, 19, 20, 39, 44):
        assert pages.position_at(TIME_NS + position) == position
    assert pages.position_at(0) == 0
    assert pages.position_at(TIME_NS + 45) is None
    assert JournalPages(tmp_path, "weather", "paris").position_at(0) is None


@pytest.mark.parametrize("filling", [b"\0", b"\xff"])
def test_a_time_is_looked_for_past_blocks_without_whole_frames(
    tmp_path: Path, filling: bytes
) -> None:
    place = place_in(tmp_path)
    written(place, 20).finish()
    written(place, 20, first=20).finish()
    spoil_frames(place.full(0, 19), 0, filling)
    spoil_frames(place.full(20, 39), 1, filling)
    found = JournalPages(tmp_path, "weather", "london")
    assert found.position_at(TIME_NS) == 10
    assert found.position_at(TIME_NS + 25) == 25
    assert found.position_at(TIME_NS + 35) is None
