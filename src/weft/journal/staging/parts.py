"""Staged parts: rows that are written to disk, but published only when their writer commits.

    staged/service=weather/node=london/
        3f1c…/                  one writer, such as a streaming query
            state.json          its progress, see batches.py
            41-9a7e….rows       one part of its batch 41, in checksummed blocks

A complete part ends with an end block, and is synced.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import NamedTuple

from weft.errors import BadOption, NotKnown, TooMany
from weft.journal.file_modes import STAGED_FOLDER, staged_opener
from weft.journal.read.messages import mapped
from weft.journal.segment.blocks import Block, BlockKind, Bytes, blocks_in, end_block, header_of
from weft.journal.segment.writer import sync_folder

FOLDER = "staged"
# Rows of a writer that disappeared are removed after this time.
ABANDONED_S = 86_400.0
WRITERS_MAX = 10_000
# Counted for a part in addition to its bytes: each is a file.
PART_BYTES = 4096

# Nothing searches for blocks behind damage here, so it need not be secret.
_SALT = 0

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,79}")
_FILE = re.compile(r"(?P<batch>\d{1,19})-[A-Za-z0-9-]{1,80}\.rows")


class StagedPart(NamedTuple):
    """One part of a writer's batch."""

    writer: str
    batch: int
    name: str


class RowChunk(NamedTuple):
    """Rows of a part; `first` is the number of the first row. The last piece may be empty."""

    part: StagedPart
    first: int
    frames: bytes
    rows: int
    is_last: bool


class StagedParts:
    """Parts of all writers of a service at one node; used by one thread.

    Raises:
        OSError: the folder cannot be created.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        folder.mkdir(parents=True, exist_ok=True, mode=STAGED_FOLDER)
        # Counted bytes of each part.
        self._costs = {path: path.stat().st_size + PART_BYTES for path in folder.glob("*/*.rows")}
        self._writers = sum(1 for _ in folder.iterdir())
        # Numbers of rows of incomplete parts.
        self._growing: dict[Path, int] = {}

    def add(self, piece: RowChunk) -> int:
        """Append rows; return the number of rows in the part. A repeated piece is ignored.

        Raises:
            BadOption: invalid name or number.
            NotKnown: earlier rows are missing.
            TooMany: the limit of staged bytes or of writers is reached.
            OSError: they cannot be written; the part is removed.
        """
        path = self._path(piece.part)
        before = self._rows_of(path)
        if piece.first < before or (piece.first == before and path not in self._growing):
            return before
        if piece.first > before:
            raise NotKnown(
                f"part {piece.part.name} has {before} rows here, not {piece.first}: begin another"
            )
        data = (
            header_of(BlockKind.FRAMES, piece.frames, piece.rows, piece.first, _SALT) + piece.frames
        )
        self._check_room(len(data))
        rows = piece.first + piece.rows
        try:
            self._append(path, data + end_block(rows, _SALT) if piece.is_last else data, piece)
        except OSError:
            self.remove(piece.part)
            raise
        if not piece.is_last:
            self._growing[path] = rows
        return rows

    def blocks(self, part: StagedPart, rows: int) -> Iterator[bytes]:
        """Yield the rows of a part, in blocks.

        Raises:
            BadOption: invalid name or number.
            NotKnown: the part is missing, incomplete, damaged, or has a different number of rows.
            OSError: unreadable file.
        """
        path = self._path(part)
        if not path.exists():
            raise NotKnown(f"part {part.name} of batch {part.batch} is not here")
        with mapped(path) as data:
            for block in _whole_blocks(data, part, rows):
                yield bytes(data[block.body : block.end])

    def remove(self, part: StagedPart) -> None:
        """Remove a part, if it exists.

        Raises:
            BadOption: invalid name or number.
        """
        self._remove(self._path(part))

    def remove_until(self, writer: str, batch: int) -> None:
        """Remove the parts of a writer up to a batch."""
        for path in (self._folder / writer).glob("*.rows"):
            found = _FILE.fullmatch(path.name)
            if found is not None and int(found["batch"]) <= batch:
                self._remove(path)

    def remove_abandoned(self, writer: str, wanted: int) -> int:
        """Remove abandoned parts of a writer, except of the wanted batch; return their number."""
        oldest = time() - ABANDONED_S
        removed = 0
        for path in (self._folder / writer).glob("*.rows"):
            if path.stat().st_mtime < oldest and not path.name.startswith(f"{wanted}-"):
                self._remove(path)
                removed += 1
        return removed

    def is_full_for(self, writer: str) -> bool:
        """Return whether a writer is unknown and the limit on writers is reached."""
        return self._writers >= WRITERS_MAX and not (self._folder / writer).exists()

    def add_writer(self, writer: str) -> None:
        """Create the folder of a writer, unless it exists.

        Raises:
            BadOption: invalid name.
            TooMany: the limit of writers is reached.
            OSError: the folder cannot be created.
        """
        check_writer(writer)
        if self.is_full_for(writer):
            raise TooMany(
                f"{WRITERS_MAX} writers have staged rows or written within the last minutes, which"
                " is the limit"
            )
        folder = self._folder / writer
        if not folder.exists():
            folder.mkdir(mode=STAGED_FOLDER)
            self._writers += 1

    def remove_writer(self, writer: str) -> None:
        """Remove everything of a writer.

        Raises:
            BadOption: invalid name.
            OSError: the folder cannot be removed.
        """
        check_writer(writer)
        folder = self._folder / writer
        if not folder.is_dir():
            return
        for path in folder.glob("*.rows"):
            self._remove(path)
        shutil.rmtree(folder)
        self._writers -= 1

    def _path(self, part: StagedPart) -> Path:
        check_writer(part.writer)
        if _NAME.fullmatch(part.name) is None:
            raise BadOption(f"{part.name[:80]!r} cannot be the name of a part")
        if not 0 <= part.batch < 1 << 63:
            raise BadOption(f"batch {part.batch} is not in 0 … {(1 << 63) - 1}")
        return self._folder / part.writer / f"{part.batch}-{part.name}.rows"

    def _rows_of(self, path: Path) -> int:
        """Return the number of rows of a part; reads the file if another process began it."""
        if path not in self._growing:
            rows, is_complete = self._found(path) if path.exists() else (0, False)
            if is_complete:
                return rows
            self._growing[path] = rows
        return self._growing[path]

    def _found(self, path: Path) -> tuple[int, bool]:
        """Return the rows of a file and whether it is complete; truncate torn bytes."""
        rows = end = 0
        with mapped(path) as data:
            for block in blocks_in(data, salt=_SALT):
                if not isinstance(block, Block) or block.first != rows:
                    break
                rows += block.frames
                end = block.end
                if block.kind == BlockKind.END:
                    return rows, True
        os.truncate(path, end)
        self._costs[path] = end + PART_BYTES
        return rows, False

    def _check_room(self, size: int) -> None:
        staged = sum(self._costs.values())
        if staged + size + PART_BYTES > self._limit_bytes:
            raise TooMany(
                f"{staged} bytes are staged, and {size} more are over the limit of"
                f" {self._limit_bytes} (journal.staged_bytes)"
            )

    def _append(self, path: Path, data: bytes, piece: RowChunk) -> None:
        self.add_writer(piece.part.writer)
        with open(path, "ab", opener=staged_opener) as file:  # Path has no opener
            file.write(data)
            file.flush()
            if piece.is_last:
                os.fdatasync(file.fileno())
        self._costs[path] = self._costs.get(path, PART_BYTES) + len(data)
        if piece.is_last:
            self._growing.pop(path, None)
            sync_folder(path.parent)
            sync_folder(self._folder)

    def _remove(self, path: Path) -> None:
        self._growing.pop(path, None)
        self._costs.pop(path, None)
        # If there is no folder in its place, there is nothing to remove either.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()


def check_writer(name: str) -> None:
    """Check the name of a writer.

    Raises:
        BadOption: invalid name.
    """
    if _NAME.fullmatch(name) is None:
        raise BadOption(f"{name[:80]!r} cannot be the name of a writer")


def _whole_blocks(data: Bytes, part: StagedPart, rows: int) -> Iterator[Block]:
    found = 0
    is_complete = False
    for block in blocks_in(data, salt=_SALT):
        if not isinstance(block, Block) or block.first != found:
            raise NotKnown(f"part {part.name} is damaged after {found} rows")
        found += block.frames
        is_complete = block.kind == BlockKind.END
        if not is_complete:
            yield block
    if not is_complete or found != rows:
        raise NotKnown(f"part {part.name} has {found} of {rows} rows, and is not complete")
