"""Files that nobody but their owner may read or write: keys, seeds and secrets.

They are written whole and take their place in one step: whoever reads finds all of one or nothing.
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
    """What is in a file; None if there is none. `what` begins the text of an error: "keys in".

    Raises:
        BadOption: it cannot be read or used; the text names the file and what is wrong with it.
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
    """Have a file hold this, and nothing else, whatever it held before.

    Raises:
        OSError: it cannot be written; then it is as it was.
    """
    with _written(path, body) as new:
        new.replace(path)


def make_private(path: Path, body: bytes) -> bool:
    """Make a file that holds this; False if there is one already, which stays as it is.

    Raises:
        OSError: it cannot be written.
    """
    with _written(path, body) as new:
        try:
            # Unlike a rename it never takes the place of what somebody else was faster with.
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
            f"{what} {path} cannot be used: its mode is {mode:04o}, so others than its owner can"
            f" get at it; chmod 600 {path}"
        )


@contextlib.contextmanager
def _written(path: Path, body: bytes) -> Iterator[Path]:
    """A file beside a path that holds a body, safely on the disk; its block gives it the name."""
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
