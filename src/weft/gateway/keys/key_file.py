"""Key file of a gateway: `keys.json` in its data folder.

Only its owner may read or write it. Changes are made under a lock and replace the file atomically:
readers see either the old or the new file.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from weft.broker.auth.keys import KeyRecord, Keyring
from weft.errors import BadOption
from weft.gateway.keys.private_file import read_private, write_private

NAME = "keys.json"
# Keys are sent to workers in one message and read in one go, so both are bounded.
KEYS_MAX = 2000
FILE_MAX_BYTES = 768 << 10

_WHAT = "keys in"

Records = tuple[KeyRecord, ...]


class _Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: Records = ()


def path_of(data: Path) -> Path:
    """Return the path of the key file in a data folder."""
    return data / NAME


def read_keys(path: Path) -> Records:
    """Return every key in a file; none if there is no file.

    Raises:
        BadOption: Unreadable or invalid file; the text names the file and the problem.
    """
    data = read_private(path, _WHAT, FILE_MAX_BYTES)
    return () if data is None else _decoded(path, data)


def change_keys(data: Path, change: Callable[[Records], Records]) -> None:
    """Replace the keys of a data folder by the result of `change`, which runs under a lock.

    Raises:
        BadOption: Unusable file, or the result is invalid or cannot be written.
    """
    path = path_of(data)
    try:
        data.mkdir(parents=True, exist_ok=True)
        with _lock(path.with_name(NAME + ".lock")):
            _write(path, change(read_keys(path)))
    except OSError as error:
        raise BadOption(f"keys in {path} cannot be written: {error.strerror}") from error


def _decoded(path: Path, data: bytes) -> Records:
    try:
        records = msgspec.json.decode(data, type=_Contents).keys
        _check_records(records)
    except (msgspec.MsgspecError, UnicodeDecodeError, BadOption) as error:
        raise BadOption(f"keys in {path} cannot be used: {error}") from error
    return records


def _check_records(records: Records) -> None:
    if len(records) > KEYS_MAX:
        raise BadOption(f"{len(records)} keys are over the limit of {KEYS_MAX}")
    Keyring(records)


def _write(path: Path, records: Records) -> None:
    _check_records(records)
    body = msgspec.json.format(msgspec.json.encode(_Contents(records)), indent=1) + b"\n"
    if len(body) > FILE_MAX_BYTES:
        raise BadOption(
            f"keys in {path} would take {len(body)} bytes, over {FILE_MAX_BYTES}: remove some that"
            " are revoked or expired"
        )
    write_private(path, body)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
