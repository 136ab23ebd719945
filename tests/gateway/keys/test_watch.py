import logging
from pathlib import Path

import pytest
from tests.broker.locksmith import record

from weft.errors import BadOption
from weft.gateway.keys.key_file import change_keys, path_of
from weft.gateway.keys.watch import KeyWatch


def put(data: Path, *names: str) -> None:
    change_keys(data, lambda _: tuple(map(record, names)))


def names(watch: KeyWatch) -> list[str] | None:
    return None if watch.records is None else [each.name for each in watch.records]


def test_without_a_folder_or_a_file_everyone_is_trusted(tmp_path: Path) -> None:
    assert names(KeyWatch("", "london")) is None
    assert not KeyWatch("", "london").look()
    assert names(KeyWatch(str(tmp_path), "london")) is None


def test_a_file_without_any_key_trusts_everyone(tmp_path: Path) -> None:
    put(tmp_path)
    assert names(KeyWatch(str(tmp_path), "london")) is None


def test_the_keys_are_there_from_the_start(tmp_path: Path) -> None:
    put(tmp_path, "one")
    watch = KeyWatch(str(tmp_path), "london")
    assert names(watch) == ["one"]
    assert watch.keyring is not None
    assert not watch.look()


def test_a_broken_file_is_no_start(tmp_path: Path) -> None:
    put(tmp_path, "one")
    path_of(tmp_path).chmod(0o644)
    with pytest.raises(BadOption, match="its mode is 0644"):
        KeyWatch(str(tmp_path), "london")


def test_the_first_key_and_every_change_are_noticed(tmp_path: Path) -> None:
    watch = KeyWatch(str(tmp_path), "london")
    put(tmp_path, "one")
    assert watch.look()
    assert names(watch) == ["one"]
    put(tmp_path, "one", "two")
    assert watch.look()
    assert names(watch) == ["one", "two"]
    assert not watch.look()


def test_a_file_written_anew_with_the_same_keys_is_no_change(tmp_path: Path) -> None:
    put(tmp_path, "one")
    watch = KeyWatch(str(tmp_path), "london")
    put(tmp_path, "one")
    assert not watch.look()


def spoil_mode(path: Path) -> None:
    path.chmod(0o666)


def spoil_contents(path: Path) -> None:
    path.write_text("{")


def empty(path: Path) -> None:
    path.write_text('{"keys": []}')


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (spoil_mode, "its mode is 0666"),
        (spoil_contents, "truncated"),
        (empty, "has no keys any more"),
        (Path.unlink, "does not exist any more"),
    ],
)
def test_a_broken_file_leaves_the_keys_as_they_were_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: object, why: str
) -> None:
    put(tmp_path, "one")
    watch = KeyWatch(str(tmp_path), "london")
    spoil(path_of(tmp_path))  # type: ignore[operator]  # one of those above
    with caplog.at_level(logging.ERROR):
        assert [watch.look() for _ in range(3)] == [False] * 3
    assert names(watch) == ["one"]
    assert len(caplog.records) == 1
    assert why in caplog.text
    assert why in watch.problem


def test_a_file_that_is_mended_counts_again(tmp_path: Path) -> None:
    put(tmp_path, "one")
    watch = KeyWatch(str(tmp_path), "london")
    spoil_mode(path_of(tmp_path))
    watch.look()
    path_of(tmp_path).chmod(0o600)
    put(tmp_path, "two")
    assert watch.look()
    assert (names(watch), watch.problem) == (["two"], "")
