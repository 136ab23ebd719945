import stat
from pathlib import Path

import pytest

from weft.errors import BadOption
from weft.gateway.keys.private_file import make_private, read_private, write_private

LIMIT = 100


def test_what_is_written_is_read_and_nobody_else_s(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_private(path, b"one")
    write_private(path, b"two")
    assert read_private(path, "a secret in", LIMIT) == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


def test_a_file_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read_private(tmp_path / "secret", "a secret in", LIMIT) is None


def test_what_is_made_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    assert make_private(path, b"one")
    assert not make_private(path, b"two")
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_private(tmp_path / "secret", b"one")
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_file_that_others_can_get_at_is_not_used(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"one")
    path.chmod(mode)
    with pytest.raises(BadOption, match=f"a secret in .*: its mode is {mode:04o}.*chmod 600"):
        read_private(path, "a secret in", LIMIT)


def test_what_is_no_plain_file_is_not_used(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="not a plain file"):
        read_private(tmp_path, "a secret in", LIMIT)


def test_a_file_that_is_too_large_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_private(path, bytes(LIMIT + 1))
    with pytest.raises(BadOption, match="over 100 bytes"):
        read_private(path, "a secret in", LIMIT)
