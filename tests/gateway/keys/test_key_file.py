import json
import multiprocessing
import os
from pathlib import Path

import pytest
from tests.broker.locksmith import record

from weft.errors import BadOption
from weft.gateway.keys.key_file import (
    FILE_MAX_BYTES,
    KEYS_MAX,
    Records,
    change_keys,
    path_of,
    read_keys,
)


def written(data: Path, *records: object) -> Path:
    """A key file with these records, made as `weft keys` makes it."""
    change_keys(data, lambda _: records)  # type: ignore[arg-type,return-value]  # some are wrong
    return path_of(data)


def test_where_there_is_no_file_there_are_no_keys(tmp_path: Path) -> None:
    assert read_keys(path_of(tmp_path)) == ()


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    keys = (record("one"), record("two", "client", publish=["a", "-b"]), record("boss", "admin"))
    assert read_keys(written(tmp_path, *keys)) == keys


def test_the_file_is_for_its_owner_alone_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = written(tmp_path / "deep" / "data", record("one"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in path.parent.iterdir()) == ["keys.json", "keys.json.lock"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o622, 0o610])
def test_a_file_that_others_can_get_at_is_refused_by_name_and_mode(
    tmp_path: Path, mode: int
) -> None:
    path = written(tmp_path, record("one"))
    path.chmod(mode)
    with pytest.raises(BadOption) as refused:
        read_keys(path)
    assert str(path) in str(refused.value)
    assert f"its mode is {mode:04o}" in str(refused.value)
    with pytest.raises(BadOption, match="its mode is"):
        written(tmp_path, record("two"))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`"),
        ('{"keys": [{}]}', "missing required field"),
        ('{"key": []}', "unknown field `key`"),
        ('{"keys": "\ud83d"}', "cannot be used"),
        (" " * (FILE_MAX_BYTES + 1), f"over {FILE_MAX_BYTES} bytes"),
    ],
)
def test_a_file_that_is_no_key_file_is_refused(tmp_path: Path, body: str, text: str) -> None:
    path = written(tmp_path, record("one"))
    path.write_text(body, errors="surrogatepass")
    with pytest.raises(BadOption, match=text) as refused:
        read_keys(path)
    assert str(path) in str(refused.value)


def test_a_record_that_cannot_be_is_refused_by_its_id(tmp_path: Path) -> None:
    path = written(tmp_path, record("one"))
    path.write_text(path.read_text().replace('"weather"', '"bad name"'))
    with pytest.raises(BadOption, match="key one00000: service 'bad name'"):
        read_keys(path)


def test_an_unknown_field_of_a_record_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, record("one"))
    contents = json.loads(path.read_text())
    contents["keys"][0]["rigths"] = {}
    path.write_text(json.dumps(contents))
    with pytest.raises(BadOption, match="unknown field `rigths`"):
        read_keys(path)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    path_of(tmp_path).mkdir(mode=0o700)
    with pytest.raises(BadOption, match="not a plain file"):
        read_keys(path_of(tmp_path))
    path_of(tmp_path).rmdir()
    os.mkfifo(path_of(tmp_path), 0o600)
    with pytest.raises(BadOption, match="not a plain file"):
        read_keys(path_of(tmp_path))


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadOption, match=r"file/data/keys.json cannot be written: Not a directory"):
        written(tmp_path / "file" / "data", record("one"))


def test_too_many_keys_are_refused_and_what_was_there_stays(tmp_path: Path) -> None:
    path = written(tmp_path, record("one"))
    with pytest.raises(BadOption, match=f"{KEYS_MAX + 1} keys are over the limit of {KEYS_MAX}"):
        written(tmp_path, *([record("two")] * (KEYS_MAX + 1)))
    large = [
        record(f"k{number:03}", publish=[f"{number}.{more}." + "x" * 100 for more in range(250)])
        for number in range(30)
    ]
    with pytest.raises(BadOption, match="remove some that are revoked or expired"):
        written(tmp_path, *large)
    assert read_keys(path) == (record("one"),)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["keys.json", "keys.json.lock"]


def _add(data: Path, number: int) -> None:
    def added(records: Records) -> Records:
        return (*records, record(f"k{number}"))

    change_keys(data, added)


def test_changes_at_the_same_time_are_made_one_after_the_other(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_add, args=(tmp_path, number)) for number in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert {each.name for each in read_keys(path_of(tmp_path))} == {f"k{n}" for n in range(8)}
