"""What is kept of commands, and what is recalled of it."""

from pathlib import Path

import msgspec
import pytest

from weft.gateway.mesh import command_log
from weft.gateway.mesh.command_log import CommandLog, LoggedCommand

ENTRY = LoggedCommand(
    time="2026-01-31T12:00:00.000+00:00",
    admin="ab" * 32,
    name="ops",
    verb="drain",
    value="",
    target="all",
    nonce="01" * 16,
    ends_ms=7,
    state="begun",
    text="",
)


def nonce(number: int) -> LoggedCommand:
    return msgspec.structs.replace(ENTRY, nonce=f"{number:032x}", ends_ms=number)


def test_what_was_written_is_recalled(tmp_path: Path) -> None:
    log = CommandLog(tmp_path / "commands.log")
    assert list(log.recalled()) == []
    for number in (1, 2):
        log.write(nonce(number))
    assert list(CommandLog(log.path).recalled()) == [(bytes(15) + b"\1", 1), (bytes(15) + b"\2", 2)]
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    log = CommandLog(tmp_path / "commands.log")
    log.write(nonce(1))
    with log.path.open("ab") as file:
        file.write(b'{"time":"2026\n{"nonce":"zz"}\n')
    log.write(nonce(2))
    assert [ends_ms for _, ends_ms in log.recalled()] == [1, 2]


def test_a_file_that_is_full_is_put_aside_and_recalled_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_log, "LIMIT_BYTES", 100)
    log = CommandLog(tmp_path / "commands.log")
    for number in (1, 2):
        log.write(nonce(number))
    assert not log.path.exists()
    # Of those that were put aside only the last file stays.
    assert [ends_ms for _, ends_ms in log.recalled()] == [2]
    assert (tmp_path / "commands.log.1").exists()


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        CommandLog(tmp_path / "nowhere" / "commands.log").write(ENTRY)
