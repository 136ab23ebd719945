from pathlib import Path

import pytest

from weft.errors import NotKnown, TooMany
from weft.journal.staging import parts as module
from weft.journal.staging.parts import RowChunk, StagedPart, StagedParts

PART = StagedPart("w", 0, "p")


def piece(first: int, text: bytes, *, is_last: bool = False) -> RowChunk:
    return RowChunk(PART, first, text, len(text), is_last)


def staged(parts: StagedParts, rows: int) -> bytes:
    return b"".join(parts.blocks(PART, rows))


def test_a_piece_that_is_sent_again_is_left_out(tmp_path: Path) -> None:
    parts = StagedParts(tmp_path, 10_000)
    for _ in range(2):
        assert parts.add(piece(0, b"abc")) == 3
    for _ in range(3):
        assert parts.add(piece(3, b"de", is_last=True)) == 5
    assert parts.add(piece(0, b"abc")) == 5
    assert staged(parts, 5) == b"abcde"


def test_another_process_goes_on_with_what_is_there(tmp_path: Path) -> None:
    StagedParts(tmp_path, 10_000).add(piece(0, b"abc"))
    file = tmp_path / "w" / "0-p.rows"
    whole = file.read_bytes()
    # A second piece that a crash came before the end of.
    file.write_bytes(whole + whole[:-1])
    parts = StagedParts(tmp_path, 10_000)
    with pytest.raises(NotKnown, match="has 3 rows here, not 6"):
        parts.add(piece(6, b"xyz"))
    assert parts.add(piece(3, b"de", is_last=True)) == 5
    assert staged(parts, 5) == b"abcde"
    assert StagedParts(tmp_path, 10_000).add(piece(3, b"de", is_last=True)) == 5


def test_room_is_given_back(tmp_path: Path) -> None:
    parts = StagedParts(tmp_path, 5000)
    for batch in range(10):
        parts.add(RowChunk(StagedPart("w", batch, "p"), 0, b"x" * 50, 50, is_last=False))
        parts.remove_until("w", batch)
    assert not list(tmp_path.rglob("*.rows"))


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    parts = StagedParts(tmp_path, 10_000)
    parts.add(piece(0, b"abc"))
    # A folder where the file was cannot be written to, by anybody.
    file = tmp_path / "w" / "0-p.rows"
    file.unlink()
    (tmp_path / "w").rmdir()
    (tmp_path / "w").write_bytes(b"in the way")
    with pytest.raises(OSError, match="w"):
        parts.add(piece(3, b"de"))
    (tmp_path / "w").unlink()
    assert parts.add(piece(0, b"abc")) == 3


def test_rows_that_were_forgotten_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = StagedParts(tmp_path, 10_000)
    for batch in (1, 2):
        parts.add(RowChunk(StagedPart("w", batch, "p"), 0, b"x", 1, is_last=True))
    assert parts.remove_abandoned("w", wanted=2) == 0
    assert len(list(tmp_path.rglob("*.rows"))) == 2
    monkeypatch.setattr(module, "ABANDONED_S", -1.0)
    assert parts.remove_abandoned("w", wanted=2) == 1
    assert [path.name for path in tmp_path.rglob("*.rows")] == ["2-p.rows"]


def test_no_more_writers_are_known_than_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITERS_MAX", 2)
    parts = StagedParts(tmp_path, 1 << 20)
    for writer in ("one", "two"):
        parts.add(RowChunk(StagedPart(writer, 0, "p"), 0, b"x", 1, is_last=True))
    with pytest.raises(TooMany, match="2 writers have staged rows"):
        StagedParts(tmp_path, 1 << 20).add(
            RowChunk(StagedPart("three", 0, "p"), 0, b"x", 1, is_last=True)
        )
    parts.add(RowChunk(StagedPart("two", 1, "p"), 0, b"x", 1, is_last=True))
    parts.remove_writer("two")
    parts.remove_writer("never-there")
    parts.add(RowChunk(StagedPart("three", 0, "p"), 0, b"x", 1, is_last=True))


def test_every_part_counts_however_small(tmp_path: Path) -> None:
    parts = StagedParts(tmp_path, 3 * module.PART_BYTES + 500)
    for name in ("a", "b", "c"):
        parts.add(RowChunk(StagedPart("w", 0, name), 0, b"x", 1, is_last=True))
    with pytest.raises(TooMany, match="staged_bytes"):
        parts.add(RowChunk(StagedPart("w", 0, "d"), 0, b"x", 1, is_last=True))
