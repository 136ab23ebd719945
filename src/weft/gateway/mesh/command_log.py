"""What administrators had a service do: a line of JSON for each command, safely on the disk.

It is also how a service knows after a restart which commands were given before: they are not obeyed
again.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

# Above this the file is put aside, in place of the one that was put aside before.
LIMIT_BYTES = 8 << 20
# More than what holds still can take.
RECALLED_BYTES = 4 << 20

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_MODE = 0o600


class Entry(msgspec.Struct, frozen=True):
    """A command, and what came of it."""

    time: str
    admin: str
    name: str
    verb: str
    value: str
    target: str
    nonce: str
    ends_ms: int
    state: str
    text: str


class CommandLog:
    """The file of one service."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def recalled(self) -> Iterator[tuple[bytes, int]]:
        """The nonces of the last commands, and until when these hold.

        Raises:
            OSError: the file is there and cannot be read.
        """
        for path in (self._old, self.path):
            for line in _last_lines(path):
                try:
                    entry = msgspec.json.decode(line, type=Entry)
                    yield bytes.fromhex(entry.nonce), entry.ends_ms
                except (msgspec.DecodeError, ValueError):
                    # A torn line is the last of a life that ended there: what it says was not done.
                    continue

    def write(self, entry: Entry) -> None:
        """Keep an entry; return when it is on the disk.

        Raises:
            OSError: it cannot be kept.
        """
        descriptor = os.open(self.path, _FLAGS, _MODE)
        try:
            os.write(descriptor, msgspec.json.encode(entry) + b"\n")
            os.fsync(descriptor)
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        if size > LIMIT_BYTES:
            self.path.replace(self._old)

    @property
    def _old(self) -> Path:
        return self.path.with_name(f"{self.path.name}.1")


def about(entry: Entry) -> dict[str, Any]:
    """An entry as facts."""
    facts: dict[str, Any] = msgspec.to_builtins(entry)
    return facts


def _last_lines(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - RECALLED_BYTES))
            return file.read().splitlines()
    except FileNotFoundError:
        return []
