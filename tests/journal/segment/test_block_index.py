from pathlib import Path

import pytest
from tests.journal.desk import place_in, written

from weft.journal.read.messages import mapped
from weft.journal.segment import block_index as module
from weft.journal.segment.block_index import Landmarks
from weft.journal.segment.blocks import block_at, salt_of


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A segment of a hundred messages, ten a block."""
    monkeypatch.setattr(module, "APART_BYTES", 300)
    segment = written(place_in(tmp_path), 100)
    segment.abandon()
    return segment.path


def first_at(marks: Landmarks, path: Path, position: int) -> int:
    with mapped(path) as data:
        salt = salt_of(data)
        block = block_at(data, marks.start(path, data, position, salt), salt)
        assert block is not None
        return block.first


@pytest.mark.parametrize("order", [range(100), range(99, -1, -1), [99, 0, 50, 50, 3, 77, 99]])
def test_a_position_is_found_by_whatever_way_one_comes(path: Path, order: list[int]) -> None:
    marks = Landmarks()
    for position in order:
        fresh = first_at(Landmarks(), path, position)
        assert first_at(marks, path, position) == fresh
        assert fresh <= position


def test_what_was_remembered_of_another_file_of_that_name_is_forgotten(
    path: Path, tmp_path: Path
) -> None:
    marks = Landmarks()
    first_at(marks, path, 99)
    other = written(place_in(tmp_path, node="paris"), 100, first=7)
    other.abandon()
    path.write_bytes(other.path.read_bytes())
    assert first_at(marks, path, 99) == first_at(Landmarks(), path, 99)


def test_few_segments_are_remembered(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEGMENTS_MAX", 2)
    marks = Landmarks()
    copies = [path.with_name(f"copy-{number}") for number in range(3)]
    for copy in copies:
        copy.write_bytes(path.read_bytes())
        first_at(marks, copy, 99)
    assert list(marks._known) == copies[1:]
