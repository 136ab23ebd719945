"""The file that a gateway's keys are kept in: `keys.json` in its data folder.

Nobody but its owner may read or write it. It is written whole, under a lock, and takes the place of
the one before in one step: whoever reads finds the one or the other.
"""

import contextlib
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from weft.core.keys import KeyRecord, Keyring
from weft.errors import BadOption

NAME = "keys.json"
# What a front tells its workers at once is bounded; so is what it reads in one go.
KEYS_MAX = 2000
FILE_MAX_BYTES = 768 << 10

_OTHERS = 0o077

Records = tuple[KeyRecord, ...]


class _Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: Records = ()


def path_of(data: Path) -> Path:
    """Where the keys of a data folder are."""
    return data / NAME


def read_keys(path: Path) -> Records:
    """Every key in a file; none if there is no file.

    Raises:
        BadOption: it cannot be read or used; the text names the file and what is wrong with it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise BadOption(f"keys in {path} cannot be read: {error.strerror}") from error
    try:
        _check_file(path, os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(FILE_MAX_BYTES + 1)
    except OSError as error:
        raise BadOption(f"keys in {path} cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    return _decoded(path, data)


def change_keys(data: Path, change: Callable[[Records], Records]) -> None:
    """Replace the keys of a data folder by what `change` makes of them; it runs under a lock.

    Raises:
        BadOption: the file cannot be used, or what was made of it cannot be kept.
    """
    path = path_of(data)
    try:
        data.mkdir(parents=True, exist_ok=True)
        with _lock(path.with_name(NAME + ".lock")):
            _write(path, change(read_keys(path)))
    except OSError as error:
        raise BadOption(f"keys in {path} cannot be written: {error.strerror}") from error


def _check_file(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise BadOption(f"keys in {path} cannot be used: it is not a plain file")
    mode = stat.S_IMODE(facts.st_mode)
    if mode & _OTHERS:
        raise BadOption(
            f"keys in {path} cannot be used: its mode is {mode:04o}, so others than its owner can"
            f" get at it; chmod 600 {path}"
        )


def _decoded(path: Path, data: bytes) -> Records:
    if len(data) > FILE_MAX_BYTES:
        raise BadOption(f"keys in {path} cannot be used: it is over {FILE_MAX_BYTES} bytes")
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
    new = path.with_name(f".{NAME}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(descriptor)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
