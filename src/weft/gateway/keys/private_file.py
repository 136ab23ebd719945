"""Files that only their owner may read or write: keys, seeds and secrets.

They are replaced atomically: readers see a whole file or none.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from weft.errors import BadOption

_OTHERS = 0o077


def read_private(path: Path, what: str, limit_bytes: int) -> bytes | None:
    """Return the contents of a file; None if it does not exist. `what` begins errors: "keys in".

    Raises:
        BadOption: Unreadable or unusable file; the text names the file and the problem.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadOption(f"{what} {path} cannot be read: {error.strerror}") from error
    try:
        _check(path, what, os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(limit_bytes + 1)
    except OSError as error:
        raise BadOption(f"{what} {path} cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if len(data) > limit_bytes:
        raise BadOption(f"{what} {path} cannot be used: it is over {limit_bytes} bytes")
    return data


def write_private(path: Path, body: bytes) -> None:
    """Write a file, replacing its contents atomically.

    Raises:
        OSError: The file cannot be written; it is unchanged.
    """
    with _written(path, body) as new:
        new.replace(path)


def make_private(path: Path, body: bytes) -> bool:
    """Create a file; return False if it exists already, unchanged.

    Raises:
        OSError: The file cannot be created.
    """
    with _written(path, body) as new:
        try:
            # Unlike a rename this never replaces a file that another process created meanwhile.
            path.hardlink_to(new)
        except FileExistsError:
            return False
        finally:
            new.unlink()
    return True


def _check(path: Path, what: str, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise BadOption(f"{what} {path} cannot be used: it is not a plain file")
    mode = stat.S_IMODE(facts.st_mode)
    if mode & _OTHERS:
        raise BadOption(
            f"{what} {path} cannot be used: its mode is {mode:04o}, which gives other users"
            f" access; chmod 600 {path}"
        )


@contextlib.contextmanager
def _written(path: Path, body: bytes) -> Iterator[Path]:
    """Write a body to a temporary file beside a path, synced; the block gives it its name."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(descriptor)
        yield new
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
