"""Command log of a service: one line of JSON per admin command, synced to the disk.

After a restart it tells which commands were executed before: they are not executed again.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

# Above this size the file is renamed, replacing the file renamed before.
LIMIT_BYTES = 8 << 20
# More than all commands that have not expired take.
RECALLED_BYTES = 4 << 20

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_MODE = 0o600


class LoggedCommand(msgspec.Struct, frozen=True):
    """An admin command and its state."""

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
    """File of one service."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def recalled(self) -> Iterator[tuple[bytes, int]]:
        """Yield the nonces of the last commands, and the times when they expire.

        Raises:
            OSError: The file exists and is unreadable.
        """
        for path in (self._old, self.path):
            for line in _last_lines(path):
                try:
                    entry = msgspec.json.decode(line, type=LoggedCommand)
                    yield bytes.fromhex(entry.nonce), entry.ends_ms
                except (msgspec.DecodeError, ValueError):
                    # Only the last line of a crashed run is torn: its command was not executed.
                    continue

    def write(self, entry: LoggedCommand) -> None:
        """Append an entry and sync it to the disk.

        Raises:
            OSError: The file cannot be written.
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


def about(entry: LoggedCommand) -> dict[str, Any]:
    """Return an entry as the payload of an event."""
    facts: dict[str, Any] = msgspec.to_builtins(entry)
    return facts


def _last_lines(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - RECALLED_BYTES))
            return file.read().splitlines()
    except FileNotFoundError:
        return []
