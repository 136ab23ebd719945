"""A key as whoever uses it keeps it: alone in a file, which is for its owner only."""

import stat
from collections.abc import Callable
from pathlib import Path

from weft.errors import BadOption

# More than a key and whatever was printed before it.
FILE_MAX_BYTES = 4096

_OTHERS = 0o077


def key_in(path: str | Path, warn: Callable[[str], None]) -> str:
    """The key in a file, which is its last line; `warn` is told if others can get at it.

    Raises:
        BadOption: the file cannot be read, or holds no key.
    """
    try:
        with Path(path).open("rb") as file:
            mode = stat.S_IMODE(Path(path).stat().st_mode)
            data = file.read(FILE_MAX_BYTES + 1)
    except OSError as error:
        raise BadOption(f"key file {path} cannot be read: {error.strerror}") from error
    lines = data.decode(errors="replace").split()
    if len(data) > FILE_MAX_BYTES or not lines or not lines[-1].startswith("wk_"):
        raise BadOption(f"key file {path} does not end with a key, which begins with wk_")
    if mode & _OTHERS:
        warn(f"key file {path} has mode {mode:04o}, so others can get at it; chmod 600 {path}")
    return lines[-1]
