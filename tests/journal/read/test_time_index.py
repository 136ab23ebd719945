from pathlib import Path

import pytest
from tests.journal.desk import batch_of, place_in

from weft.journal.parquet.seal import seal_all
from weft.journal.read import time_index as module
from weft.journal.read.time_index import LATEST, position_at
from weft.journal.segment.file_names import JournalFolder, Segment, segments_of
from weft.journal.segment.recovery import recover
from weft.journal.segment.writer import OpenSegment
from weft.wire.frames import Flag, Kind, Stamp, encode, stamp_frame


def at(*times_ns: int) -> list[bytes]:
    """Messages that came at these times."""
    frames = []
    for sequence, time_ns in enumerate(times_ns):
        frame = bytearray(encode(Kind.MESSAGE, b"a.b", b"x", b"", Flag.BARE))
        stamp_frame(frame, 0, Stamp(1, publisher=1, sequence=sequence, time_ns=time_ns))
        frames.append(bytes(frame))
    return frames


def segment_of(place: JournalFolder, first: int, *times_ns: int, per_block: int = 2) -> OpenSegment:
    segment = OpenSegment(place, first)
    segment.append(batch_of(at(*times_ns), first, per_block))
    return segment


def found(root: Path, time_ns: int) -> int | None:
    return position_at(root, "weather", "london", time_ns)


def expected(times_ns: list[int], time_ns: int) -> int | None:
    return next((n for n, time in enumerate(times_ns) if time >= time_ns), None)


# The clock goes back between segments, between blocks and within one.
BACK = [[100, 200, 300], [250, 260, 40], [50, 60, 70], [80, 400, 90, 95], [96, 97]]


@pytest.mark.parametrize("sealed", [0, 2, 4])
@pytest.mark.parametrize("is_crashed", [False, True])
def test_the_first_message_at_a_time_is_found_after_the_clock_went_back(
    tmp_path: Path, sealed: int, is_crashed: bool
) -> None:
    place = place_in(tmp_path)
    first = 0
    for number, times_ns in enumerate(BACK):
        segment = segment_of(place, first, *times_ns)
        first += len(times_ns)
        if number == 4:
            break
        if is_crashed:
            segment.abandon()
            recover(place)
        else:
            segment.finish()
        if number < sealed:
            list(seal_all(tmp_path, "weather", "london"))
    times_ns = [each for some in BACK for each in some]
    for time_ns in range(402):
        assert found(tmp_path, time_ns) == expected(times_ns, time_ns)


def test_a_segment_that_is_sealed_meanwhile_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_in(tmp_path)
    segment_of(place, 0, 10, 20).finish()
    segment_of(place, 2, 30, 40).finish()
    stale = [segments_of(tmp_path, "weather", "london")] * 3
    list(seal_all(tmp_path, "weather", "london"))

    def late(root: Path, service: str, node: str) -> list[Segment]:
        return stale.pop() if stale else segments_of(root, service, node)

    monkeypatch.setattr(module, "segments_of", late)
    assert found(tmp_path, 25) == 2
    assert stale == []


def test_one_that_is_never_found_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment_of(place_in(tmp_path), 0, 10, 20).finish()
    (listed,) = segments_of(tmp_path, "weather", "london")
    listed.path.unlink()
    monkeypatch.setattr(module, "segments_of", lambda *_: [listed])
    with pytest.raises(FileNotFoundError):
        found(tmp_path, 5)


def test_a_complete_segment_tells_its_latest_time_without_being_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment_of(place_in(tmp_path), 0, 10, 40, 20).finish()
    (segment,) = segments_of(tmp_path, "weather")
    monkeypatch.setattr(module, "_look", None)
    assert LATEST.of(segment) == 40
    assert found(tmp_path, 41) is None
    # And is asked once.
    segment.path.write_bytes(b"")
    assert LATEST.of(segment) == 40


def test_a_damaged_sealed_segment_is_passed_over(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    segment_of(place, 0, 10, 20).finish()
    list(seal_all(tmp_path, "weather", "london"))
    segment_of(place, 2, 30, 40).finish()
    path = segments_of(tmp_path, "weather")[0].path
    path.write_bytes(path.read_bytes()[:-50])
    assert found(tmp_path, 5) == 2


def test_few_segments_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEGMENTS_MAX", 2)
    place = place_in(tmp_path)
    for first in range(0, 8, 2):
        segment_of(place, first, first, first + 1).finish()
    latest = module.Latest()
    assert [latest.of(each) for each in segments_of(tmp_path, "weather")] == [1, 3, 5, 7]
    assert len(latest._known) == 2
