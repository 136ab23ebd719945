"""What was promised about channels, over restarts and on disks that fail."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weft.gateway.mesh import lease_file
from weft.gateway.mesh.lease_file import PromiseFile
from weft.mesh.channels.leases import (
    CONFIRMED,
    CONTESTED,
    FAILED,
    LEASE_NS,
    LeaseClaim,
    Note,
    Promises,
)

ONE, OTHER = b"1" * 16, b"2" * 16
CHESS = Note(b"games.chess", 3, ONE)
GO = Note(b"games.go", 1, OTHER)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "channels-chat.log"


def begun(path: Path) -> PromiseFile:
    """A file as a gateway that starts has it."""
    file = PromiseFile(path)
    file.recall()
    return file


def recalled(path: Path) -> tuple[list[Note], list[bytes]]:
    return PromiseFile(path).recall()


@contextmanager
def no_room(path: Path, left_bytes: int = 0) -> Iterator[None]:
    """While this lasts, no file may be longer than this one is and so much more."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + left_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_nothing_was_promised_before_the_first_life(path: Path) -> None:
    assert recalled(path) == ([], [])
    assert path.read_bytes() == b""


@pytest.mark.req("RLY-11")
def test_what_was_promised_is_recalled_the_last_for_each_name(path: Path) -> None:
    file = begun(path)
    for note in (CHESS, GO, CHESS._replace(epoch=7, channel=OTHER)):
        file.keep(note)
    assert recalled(path) == ([GO, CHESS._replace(epoch=7, channel=OTHER)], [])
    # And by the life after that.
    assert recalled(path) == ([GO, CHESS._replace(epoch=7, channel=OTHER)], [])


def test_who_counts_is_recalled_and_who_does_not_any_more_is_not(path: Path) -> None:
    file = begun(path)
    for node, is_voter in ((ONE, True), (OTHER, True), (ONE, False), (ONE, False)):
        file.note_voter(node, is_voter)
    file.keep(CHESS)
    assert recalled(path) == ([CHESS], [OTHER])


def test_nobody_else_may_read_it(path: Path) -> None:
    begun(path).keep(CHESS)
    assert path.stat().st_mode & 0o777 == 0o600


def test_names_are_any_that_are_legal(path: Path) -> None:
    note = CHESS._replace(name='spiele.schäch."x" \\ '.encode())
    begun(path).keep(note)
    assert recalled(path) == ([note], [])


@pytest.mark.req("RLY-11")
def test_wherever_the_last_line_is_torn_all_before_it_is_recalled(path: Path) -> None:
    file = begun(path)
    file.keep(CHESS)
    before = len(path.read_bytes())
    file.keep(GO)
    whole = path.read_bytes()
    for end in range(before, len(whole) - 1):
        path.write_bytes(whole[:end])
        assert recalled(path) == ([CHESS], [])
    # Only the end of the line is missing.
    path.write_bytes(whole[:-1])
    assert recalled(path) == ([CHESS, GO], [])


@pytest.mark.req("RLY-11")
@pytest.mark.parametrize("torn", [b'{"name":"games', b'{"voter":"31', b"\0\0\0\0"])
def test_what_is_written_after_a_torn_line_is_not_lost_with_it(path: Path, torn: bytes) -> None:
    begun(path).keep(CHESS)
    with path.open("ab") as end:
        end.write(torn)
    begun(path).keep(GO)
    assert recalled(path) == ([CHESS, GO], [])


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"[]",
        b'{"name":"games.chess","epoch":"x","channel":"31"}',
        b'{"name":"games.chess","epoch":1,"channel":"zz"}',
        b'{"voter":"zz"}',
        b'{"name":"\xff","epoch":1,"channel":"31"}',
        b'{"name":"\\ud800","epoch":1,"channel":"' + ONE.hex().encode() + b'"}',
    ],
)
def test_a_line_that_says_nothing_is_passed_over(path: Path, line: bytes) -> None:
    begun(path).keep(CHESS)
    path.write_bytes(line + b"\n" + path.read_bytes())
    assert recalled(path) == ([CHESS], [])


def test_it_is_written_anew_before_it_is_too_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_file, "LIMIT_BYTES", 1000)
    file = begun(path)
    file.keep(GO)
    file.note_voter(ONE, True)
    for epoch in range(200):
        file.keep(CHESS._replace(epoch=epoch))
        assert path.stat().st_size < 1200
    assert recalled(path) == ([GO, CHESS._replace(epoch=199)], [ONE])
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_what_another_life_left_half_written_aside_is_written_over(path: Path) -> None:
    begun(path).keep(CHESS)
    aside = path.with_name(f"{path.name}.new")
    aside.write_bytes(b'{"name":"old","epoch":1,"channel":"' * 100)
    assert recalled(path) == ([CHESS], [])
    assert not aside.exists()


def test_a_link_in_its_place_is_not_followed(path: Path, tmp_path: Path) -> None:
    file = begun(path)
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    path.unlink()
    path.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        file.keep(CHESS)
    assert victim.read_bytes() == b""


@pytest.mark.req("RLY-11")
def test_what_cannot_be_written_is_not_promised(path: Path) -> None:
    file = begun(path)
    promises = Promises()
    promises.recall([], file.keep, 0)
    with no_room(path):
        assert promises.open(CHESS, LeaseClaim(1, 1), 0) == FAILED
    assert (len(promises), promises.epoch(CHESS.name)) == (0, 0)
    assert promises.open(CHESS, LeaseClaim(1, 1), 0) == CONFIRMED
    assert recalled(path) == ([CHESS], [])


@pytest.mark.req("RLY-11")
@pytest.mark.parametrize("left_bytes", [1, 10, 40])
def test_a_line_that_the_disk_had_half_room_for_spoils_none_that_comes_later(
    path: Path, left_bytes: int
) -> None:
    file = begun(path)
    file.keep(CHESS)
    with no_room(path, left_bytes), pytest.raises(OSError, match="File too large"):
        file.keep(GO)
    file.keep(GO._replace(epoch=2))
    assert recalled(path) == ([CHESS, GO._replace(epoch=2)], [])


def test_that_nothing_can_be_written_is_logged_once_each_time_it_begins(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = begun(path)
    for _ in range(2):
        with no_room(path):
            for _ in range(3):
                with pytest.raises(OSError, match="File too large"):
                    file.keep(CHESS)
        file.keep(CHESS)
    told = "lease votes of channels cannot be written: [Errno 27] File too large"
    assert caplog.messages == [told, told]


def test_where_there_is_no_folder_that_is_told(tmp_path: Path) -> None:
    nowhere = PromiseFile(tmp_path / "nowhere" / "channels.log")
    with pytest.raises(FileNotFoundError):
        nowhere.recall()
    with pytest.raises(FileNotFoundError):
        nowhere.keep(CHESS)
    with pytest.raises(FileNotFoundError):
        nowhere.note_voter(ONE, True)


def test_what_cannot_be_read_is_told(path: Path) -> None:
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        recalled(path)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_descriptor_is_left_open(path: Path) -> None:
    before = descriptors()
    file = begun(path)
    file.keep(CHESS)
    with no_room(path):
        for _ in range(3):
            with pytest.raises(OSError, match="File too large"):
                file.keep(GO)
    assert descriptors() == before


@pytest.mark.req("RLY-11")
def test_a_gateway_that_begins_anew_keeps_the_name_for_whom_it_promised_it(path: Path) -> None:
    promises = Promises()
    promises.recall([], begun(path).keep, 0)
    assert promises.open(CHESS, LeaseClaim(1, 1), 0) == CONFIRMED
    file = PromiseFile(path)
    again = Promises()
    again.recall(file.recall()[0], file.keep, 0)
    later = CHESS._replace(epoch=4, channel=OTHER)
    assert again.open(later, LeaseClaim(2, 1), LEASE_NS - 1) == CONTESTED
    assert again.open(later, LeaseClaim(2, 1), LEASE_NS) == CONFIRMED
    assert recalled(path) == ([later], [])
