"""Read a client's key from a file that only its owner may read."""

import stat
from collections.abc import Callable
from pathlib import Path

from weft.errors import BadOption

# Room for the key and the command output that may precede it.
FILE_MAX_BYTES = 4096

_OTHERS = 0o077


def key_in(path: str | Path, warn: Callable[[str], None]) -> str:
    """Return the key in a file, its last word; call `warn` if other users may access the file.

    Raises:
        BadOption: Unreadable file, or no key in it.
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
        warn(f"key file {path} has mode {mode:04o}, so other users may access it; chmod 600 {path}")
    return lines[-1]
