"""Identity key of a gateway: the seed in `node.key` of its data folder.

It is created when the gateway first starts. Anyone who has it can impersonate this gateway.
"""

import os
from pathlib import Path

from weft.errors import BadOption
from weft.gateway.keys.private_file import make_private, read_private

NAME = "node.key"
SEED_BYTES = 32

_WHAT = "the node key in"
_FILE_MAX_BYTES = 1024


def seed_in(data: Path) -> bytes:
    """Return the seed of a data folder, created if there is none.

    Raises:
        BadOption: The file is unusable or cannot be created; the text names it and the problem.
    """
    path = data / NAME
    body = read_private(path, _WHAT, _FILE_MAX_BYTES)
    if body is None:
        _make(path)
        body = read_private(path, _WHAT, _FILE_MAX_BYTES) or b""
    try:
        seed = bytes.fromhex(body.decode("ascii").strip())
    except ValueError:
        seed = b""
    if len(seed) != SEED_BYTES:
        raise BadOption(f"{_WHAT} {path} cannot be used: it is not {2 * SEED_BYTES} hex digits")
    return seed


def _make(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # If another process was faster, its seed is kept.
        make_private(path, os.urandom(SEED_BYTES).hex().encode() + b"\n")
    except OSError as error:
        raise BadOption(f"{_WHAT} {path} cannot be made: {error.strerror}") from error
