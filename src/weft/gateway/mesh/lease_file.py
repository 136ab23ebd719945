"""Lease file of a gateway: its channel lease votes and its voters, kept over a restart.

One line of JSON per change; a vote is synced to the disk before it is sent. The file is rewritten
when it is opened, so it holds little more than the current state.
"""

import logging
import os
from pathlib import Path

import msgspec

from weft.mesh.channels.leases import Note

_log = logging.getLogger(__name__)

# Above this size it is rewritten while the gateway runs.
LIMIT_BYTES = 8 << 20

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_MODE = 0o600


class LeaseChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change: a vote for a channel name, or a gateway that became or is no longer a voter."""

    name: str = ""
    epoch: int = 0
    channel: str = ""
    voter: str = ""
    is_voter: bool = True


class PromiseFile:
    """File of one service."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._notes: dict[bytes, Note] = {}
        self._voters: dict[bytes, None] = {}
        self._size = 0
        # The last line may be torn: a line appended to it would be lost.
        self._is_failing = False

    def recall(self) -> tuple[list[Note], list[bytes]]:
        """Return the votes and voters of earlier runs.

        Raises:
            OSError: The file is unreadable, or cannot be rewritten.
        """
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            lines = []
        for text in lines:
            try:
                self._take(msgspec.json.decode(text, type=LeaseChange))
            except (msgspec.DecodeError, ValueError):
                # Only the last line of a run that crashed is torn: its vote was not sent.
                continue
        self._rewrite()
        return list(self._notes.values()), list(self._voters)

    def keep(self, note: Note) -> None:
        """Append a vote and sync it to the disk.

        Raises:
            OSError: The file cannot be written.
        """
        line = LeaseChange(note.name.decode(), note.epoch, note.channel.hex())
        self._append(line, is_synced=True)
        self._take(line)

    def note_voter(self, node: bytes, is_voter: bool) -> None:
        """Append that a gateway became a voter, or is no longer one.

        Raises:
            OSError: The file cannot be written.
        """
        line = LeaseChange(voter=node.hex(), is_voter=is_voter)
        self._append(line, is_synced=False)
        self._take(line)

    def _take(self, line: LeaseChange) -> None:
        if line.voter:
            node = bytes.fromhex(line.voter)
            self._voters.pop(node, None)
            if line.is_voter:
                self._voters[node] = None
        else:
            name = line.name.encode()
            self._notes.pop(name, None)
            self._notes[name] = Note(name, line.epoch, bytes.fromhex(line.channel))

    def _append(self, line: LeaseChange, *, is_synced: bool) -> None:
        try:
            self._write_line(msgspec.json.encode(line) + b"\n", is_synced=is_synced)
        except OSError as error:
            # Logged once per failure: each channel retries every few seconds.
            if not self._is_failing:
                _log.error("lease votes of channels cannot be written: %s", error)
            self._is_failing = True
            raise
        self._is_failing = False

    def _write_line(self, data: bytes, *, is_synced: bool) -> None:
        if self._is_failing or self._size > LIMIT_BYTES:
            self._rewrite()
        descriptor = os.open(self.path, _FLAGS, _MODE)
        try:
            _write(descriptor, data)
            if is_synced:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._size += len(data)

    def _rewrite(self) -> None:
        lines = [
            *(
                LeaseChange(each.name.decode(), each.epoch, each.channel.hex())
                for each in self._notes.values()
            ),
            *(LeaseChange(voter=node.hex()) for node in self._voters),
        ]
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        aside = self.path.with_name(f"{self.path.name}.new")
        descriptor = os.open(aside, _FLAGS | os.O_TRUNC, _MODE)
        try:
            _write(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        aside.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._size = len(data)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
