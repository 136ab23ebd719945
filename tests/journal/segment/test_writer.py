import errno
import mmap
import os
from pathlib import Path

import pytest
from tests.journal.desk import batch_of, message, place_in, written

from weft.journal.segment.blocks import Block, BlockKind, about_in, blocks_in
from weft.journal.segment.file_names import segments_of
from weft.journal.segment.writer import OpenSegment
from weft.wire.message.message import Message


def test_a_segment_begins_with_what_it_is(tmp_path: Path) -> None:
    segment = OpenSegment(place_in(tmp_path), 7)
    data = segment.path.read_bytes()
    (block,) = blocks_in(data)
    assert isinstance(block, Block)
    about = Message.from_body(about_in(data, block))
    assert (block.kind, block.first) == (BlockKind.ABOUT, 7)
    assert [about["service"], about["node"], about["first"]] == ["weather", "london", 7]
    segment.abandon()


def test_batches_follow_one_another(tmp_path: Path) -> None:
    segment = written(place_in(tmp_path), 10)
    segment.append(batch_of([message(10), message(11)], 10))
    segment.sync()
    assert (segment.next, segment.size) == (12, segment.path.stat().st_size)
    segment.finish()
    (found,) = segments_of(tmp_path, "weather")
    assert (found.state, found.first, found.last) == ("full", 0, 11)
    segment.abandon()


def test_one_that_got_no_messages_leaves_nothing(tmp_path: Path) -> None:
    written(place_in(tmp_path), 0).finish()
    assert segments_of(tmp_path, "weather") == []


def test_a_write_that_fails_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = written(place_in(tmp_path), 10)
    before = segment.path.read_bytes()
    write = os.pwrite
    sizes = iter([100])

    def little(fd: int, data: memoryview, at: int) -> int:
        for size in sizes:
            return write(fd, data[:size], at)
        return full_disk(fd, data, at)

    monkeypatch.setattr(os, "pwrite", little)
    with pytest.raises(OSError, match="No space"):
        segment.append(batch_of([message(10)] * 10, 10))
    monkeypatch.undo()
    assert segment.path.read_bytes() == before
    assert segment.next == 10
    segment.append(batch_of([message(10)], 10))
    kinds = [each.kind for each in blocks_in(segment.path.read_bytes()) if isinstance(each, Block)]
    assert kinds == [BlockKind.ABOUT, BlockKind.FRAMES, BlockKind.FRAMES]


def full_disk(_fd: int, _data: memoryview, _at: int) -> int:
    raise OSError(28, "No space left on device")


def test_an_old_one_is_never_overwritten(tmp_path: Path) -> None:
    segment = written(place_in(tmp_path), 10)
    segment.abandon()
    with pytest.raises(FileExistsError):
        OpenSegment(place_in(tmp_path), 0)


def test_one_that_cannot_begin_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_in(tmp_path)
    before = set(Path("/proc/self/fd").iterdir())
    monkeypatch.setattr(os, "pwrite", full_disk)
    with pytest.raises(OSError, match="No space"):
        OpenSegment(place, 0)
    monkeypatch.undo()
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_the_memory_of_what_is_written_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advised: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _fd, *advice: advised.append(advice))
    monkeypatch.setattr("weft.journal.segment.writer.LET_GO_BYTES", 3 * mmap.PAGESIZE)
    segment = written(place_in(tmp_path), 0)
    messages = [message(0)] * (4 * mmap.PAGESIZE // len(message(0)))
    for first in (0, len(messages)):
        segment.append(batch_of(messages, first))
        whole = segment.size - segment.size % mmap.PAGESIZE
        assert advised.pop() == (0, whole, os.POSIX_FADV_DONTNEED)
    segment.append(batch_of(messages[:1], segment.next))
    assert advised == []
    segment.abandon()


def test_a_file_system_that_takes_no_advice_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_fd: int, *_advice: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    monkeypatch.setattr("weft.journal.segment.writer.LET_GO_BYTES", 1)
    segment = written(place_in(tmp_path), 10)
    assert segment.next == 10
    segment.abandon()
