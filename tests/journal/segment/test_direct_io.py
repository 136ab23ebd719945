import errno
import fcntl
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.journal.desk import batch_of, message, on_border, place_in, written

from weft.broker.journal.batcher import BLOCK_HEADER_BYTES, JournalBatch
from weft.journal.parquet.seal import Sealed, seal_all
from weft.journal.read.messages import history
from weft.journal.read.record import JournalRecord
from weft.journal.segment import direct_io
from weft.journal.segment.blocks import Block, BlockKind, blocks_in, filler, filler_size
from weft.journal.segment.direct_io import BORDER_BYTES, end_on_border
from weft.journal.segment.file_names import segments_of
from weft.journal.segment.recovery import recover
from weft.journal.segment.tail import Tails
from weft.journal.segment.writer import OpenSegment

FRAMES = [BlockKind.FRAMES, BlockKind.FILLER]

Write = Callable[[int, memoryview, int], int]


@pytest.fixture(autouse=True)
def anything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_io, "DIRECT_MIN_BYTES", 1000)
    monkeypatch.setattr(direct_io, "PATIENCE_S", math.inf)


def large(first: int) -> JournalBatch:
    return batch_of([message(first + number, body=bytes(100)) for number in range(10)], first)


def kinds(segment: OpenSegment) -> list[int]:
    found = list(blocks_in(segment.path.read_bytes()))
    return [each.kind for each in found if isinstance(each, Block)]


def positions(root: Path) -> list[int]:
    found = history(root, "weather", "london")
    return [each.position for each in found if isinstance(each, JournalRecord)]


@given(st.integers(0, 1 << 40))
def test_a_filler_ends_on_a_border(end: int) -> None:
    size = filler_size(end, BORDER_BYTES)
    assert (end + size) % BORDER_BYTES == 0
    assert size == 0 or BLOCK_HEADER_BYTES <= size < BORDER_BYTES + BLOCK_HEADER_BYTES


def test_a_filler_is_a_block_of_its_size() -> None:
    (block,) = blocks_in(filler(100, 7, 0), salt=0)
    assert isinstance(block, Block)
    assert (block.kind, block.end, block.frames, block.first) == (BlockKind.FILLER, 100, 0, 7)


def test_a_large_batch_begins_and_ends_on_a_border(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = OpenSegment(place_in(tmp_path), 0)
    write = os.pwrite
    written_directly: list[tuple[int, int]] = []

    def noted(fd: int, data: memoryview, at: int) -> int:
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT:
            written_directly.append((at, len(data)))
        return write(fd, data, at)

    monkeypatch.setattr(os, "pwrite", noted)
    segment.append(on_border(large(0)))
    segment.append(on_border(large(10)))
    assert written_directly == [(BORDER_BYTES, BORDER_BYTES), (2 * BORDER_BYTES, BORDER_BYTES)]
    assert kinds(segment) == [BlockKind.ABOUT, BlockKind.FILLER, *FRAMES, *FRAMES]
    assert segment.size == segment.path.stat().st_size == 3 * BORDER_BYTES
    segment.abandon()


def test_a_small_batch_follows_without_a_filler(tmp_path: Path) -> None:
    segment = OpenSegment(place_in(tmp_path), 0)
    segment.append(on_border(large(0)))
    segment.append(batch_of([message(10)], 10))
    segment.append(batch_of([message(11)], 11))
    segment.append(on_border(large(12)))
    small = [BlockKind.FRAMES, BlockKind.FRAMES, BlockKind.FILLER]
    assert kinds(segment) == [BlockKind.ABOUT, BlockKind.FILLER, *FRAMES, *small, *FRAMES]
    segment.finish()
    assert positions(tmp_path) == list(range(22))


def test_a_batch_elsewhere_in_memory_is_copied_this_time(tmp_path: Path) -> None:
    segment = OpenSegment(place_in(tmp_path), 0)
    batch = large(0)
    offset = batch.writer.reserve(1)
    batch.blocks[0] = batch.blocks[0]._replace(start=1, end=offset + 1)
    batch.data[1 : offset + 1] = batch.data[:offset]
    assert end_on_border(batch, 0) == 0
    segment.append(batch)
    assert kinds(segment) == [BlockKind.ABOUT, BlockKind.FRAMES]
    segment.abandon()


def test_a_batch_that_is_tried_again_gets_one_filler() -> None:
    batch = on_border(large(0))
    ends = {end_on_border(batch, 0) for _ in range(3)}
    assert ends == {batch.start + BORDER_BYTES}


def test_what_was_copied_is_on_the_disk_before_what_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = written(place_in(tmp_path), 10)
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda _fd: synced.append(segment.size))
    segment.append(on_border(large(10)))
    assert synced == [BORDER_BYTES]
    segment.append(on_border(large(20)))
    assert synced == [BORDER_BYTES]
    segment.abandon()


def test_a_file_system_that_cannot_is_written_the_ordinary_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = failing_directly(monkeypatch, OSError(errno.EINVAL, "Invalid argument"))
    segment = OpenSegment(place_in(tmp_path), 0)
    segment.append(on_border(large(0)))
    segment.append(on_border(large(10)))
    assert len(tried) == 1
    assert kinds(segment) == [BlockKind.ABOUT, BlockKind.FILLER, BlockKind.FRAMES, BlockKind.FRAMES]
    segment.finish()
    assert positions(tmp_path) == list(range(20))


def test_a_file_that_cannot_be_opened_so_is_written_the_ordinary_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_io, "opened", lambda _path: -1)
    segment = OpenSegment(place_in(tmp_path), 0)
    segment.append(on_border(large(0)))
    assert kinds(segment) == [BlockKind.ABOUT, BlockKind.FRAMES]
    segment.abandon()
    assert direct_io.opened(tmp_path) == -1


def test_after_a_slow_write_the_rest_is_left_to_the_memory_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_io, "PATIENCE_S", -math.inf)
    segment = OpenSegment(place_in(tmp_path), 0)
    segment.append(on_border(large(0)))
    segment.append(on_border(large(10)))
    assert kinds(segment) == [BlockKind.ABOUT, BlockKind.FILLER, *FRAMES, BlockKind.FRAMES]
    segment.finish()
    assert positions(tmp_path) == list(range(20))


@pytest.mark.parametrize(
    ("size", "took_s", "is_slow"),
    [(1 << 20, 0.005, False), (1 << 20, 0.02, True), (8 << 20, 0.02, False), (8 << 20, 0.1, True)],
)
def test_a_disk_is_slow_that_takes_less_than_so_much(
    monkeypatch: pytest.MonkeyPatch, size: int, took_s: float, *, is_slow: bool
) -> None:
    monkeypatch.setattr(direct_io, "PATIENCE_S", 0.01)
    assert direct_io.is_slow(size, took_s) == is_slow


def test_a_direct_write_that_fails_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = OpenSegment(place_in(tmp_path), 0)
    failing_directly(monkeypatch, OSError(errno.ENOSPC, "No space left on device"), after=512)
    with pytest.raises(OSError, match="No space"):
        segment.append(on_border(large(0)))
    monkeypatch.undo()
    assert segment.next == 0
    assert kinds(segment) == [BlockKind.ABOUT, BlockKind.FILLER]
    assert segment.size == segment.path.stat().st_size
    segment.abandon()


def failing_directly(
    monkeypatch: pytest.MonkeyPatch, error: OSError, after: int = 0
) -> list[memoryview]:
    """Have direct writes fail, the first when so much was written."""
    write = os.pwrite
    tried: list[memoryview] = []

    def fail(fd: int, data: memoryview, at: int) -> int:
        if not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT:
            return write(fd, data, at)
        tried.append(data)
        if after and len(tried) == 1:
            return write(fd, data[:after], at)
        raise error

    monkeypatch.setattr(os, "pwrite", fail)
    return tried


def test_everybody_reads_past_fillers(tmp_path: Path) -> None:
    segment = written(place_in(tmp_path), 10)
    tails = Tails(tmp_path, "weather")
    for first in (10, 20, 30):
        segment.append(on_border(large(first)))
        assert tails.ends() == {"london": first + 10}
        assert positions(tmp_path) == list(range(first + 10))
    segment.finish()
    (made,) = seal_all(tmp_path, "weather", "london")
    assert isinstance(made, Sealed)
    assert positions(tmp_path) == list(range(40))


@pytest.mark.parametrize("cut", range(1, 3 * BORDER_BYTES, 61))
def test_what_a_crash_tore_is_found_among_fillers(tmp_path: Path, cut: int) -> None:
    place = place_in(tmp_path)
    segment = OpenSegment(place, 0)
    for first in (0, 10, 20):
        segment.append(on_border(large(first)))
    segment.abandon()
    os.truncate(segment.path, segment.size - cut)
    data = segment.path.read_bytes()
    whole = [each for each in blocks_in(data) if isinstance(each, Block)]
    kept = sum(each.frames for each in whole)
    found = recover(place)
    assert found.position >= kept
    assert positions(tmp_path) == list(range(kept))
    assert [each.state for each in segments_of(tmp_path, "weather")] in ([], ["full"])
