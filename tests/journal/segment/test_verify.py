import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.journal.desk import batch_of, message, on_border, place_in, written

from weft.journal.segment.blocks import Block, BlockKind, blocks_in, end_block, salt_of
from weft.journal.segment.file_names import JournalFolder, Segment, segments_of
from weft.journal.segment.verify import check_segment


def full(root: Path, count: int = 40) -> Segment:
    written(place_in(root), count).finish()
    (segment,) = segments_of(root, "weather")
    return segment


def starts_in(data: bytes) -> list[Block]:
    return [each for each in blocks_in(data) if isinstance(each, Block)]


def test_a_whole_segment_has_no_faults(tmp_path: Path) -> None:
    segment = full(tmp_path)
    checked = check_segment(segment)
    assert (checked.messages, checked.faults) == (40, [])
    assert checked.size == segment.path.stat().st_size


def test_an_open_segment_may_have_no_end(tmp_path: Path) -> None:
    written(place_in(tmp_path), 40)
    (segment,) = segments_of(tmp_path, "weather")
    assert (check_segment(segment).messages, check_segment(segment).faults) == (40, [])


@pytest.fixture(scope="module", params=["ordinary", "direct"])
def whole(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Segment:
    folder = tmp_path_factory.mktemp("journal")
    if request.param == "ordinary":
        return full(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weft.journal.segment.direct_io.DIRECT_MIN_BYTES", 1)
        patch.setattr("weft.journal.segment.direct_io.PATIENCE_S", math.inf)
        segment = written(place_in(folder), 10)
        for first in (10, 20, 30):
            frames = [message(number) for number in range(first, first + 10)]
            segment.append(on_border(batch_of(frames, first)))
        segment.finish()
    (found,) = segments_of(folder, "weather")
    assert BlockKind.FILLER in [each.kind for each in starts_in(found.path.read_bytes())]
    return found


@settings(max_examples=1000)
@given(st.data())
def test_every_flipped_bit_is_found_with_its_range(whole: Segment, data: st.DataObject) -> None:
    before = whole.path.read_bytes()
    bit = data.draw(st.integers(0, 8 * len(before) - 1))
    blocks = starts_in(before)
    changed = bytearray(before)
    changed[bit // 8] ^= 1 << bit % 8
    try:
        whole.path.write_bytes(changed)
        checked = check_segment(whole)
    finally:
        whole.path.write_bytes(before)
    (fault,) = checked.faults
    hit = next(each for each in blocks if each.start <= bit // 8 < each.end)
    assert (fault.start, fault.end) == (hit.start, hit.end)
    lost = (hit.first, hit.first + hit.frames - 1) if hit.frames else (-1, -1)
    assert (fault.first, fault.last) == lost
    assert checked.messages == 40 - hit.frames


def replaced(place: JournalFolder, data: bytes) -> Segment:
    path = place.full(0, 39)
    path.write_bytes(data)
    (segment,) = segments_of(place.folder.parent, "weather")
    return segment


@pytest.mark.parametrize(
    ("change", "why", "positions"),
    [
        (lambda _: b"", "it is empty", (-1, -1)),
        (lambda data: data[: starts_in(data)[-1].start], "its end is missing", (-1, -1)),
        (lambda data: data + end_block(40, salt_of(data)), "a block follows the end", (-1, -1)),
        (lambda data: data + b"more", "half a header", (-1, -1)),
        (
            lambda data: data[: starts_in(data)[2].start] + data[starts_in(data)[3].start :],
            "position 20 comes next",
            (10, 19),
        ),
        (
            lambda data: data[: starts_in(data)[4].start] + end_block(30, salt_of(data)),
            "it ends before position 30",
            (-1, -1),
        ),
        (
            lambda data: data[: starts_in(data)[3].start] + data[starts_in(data)[2].start :],
            "position 10 comes next",
            (-1, -1),
        ),
    ],
)
def test_what_is_missing_or_too_much_is_a_fault(
    tmp_path: Path, change: object, why: str, positions: tuple[int, int]
) -> None:
    segment = full(tmp_path)
    assert callable(change)
    segment = replaced(place_in(tmp_path), change(segment.path.read_bytes()))
    fault = check_segment(segment).faults[0]
    assert (fault.why, (fault.first, fault.last)) == (why, positions)
