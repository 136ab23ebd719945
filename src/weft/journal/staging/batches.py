"""Commit log of staged batches: records which are published and which is being published.

A published batch is never published again, however often its writer asks. If the gateway was killed
while it published a batch, it continues where it stopped: the rows have a publisher number of their
own, so the journal shows how many of them it has.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, time
from typing import NamedTuple

import msgspec

from weft.errors import BadOption
from weft.journal.file_modes import staged_opener
from weft.journal.read.messages import history
from weft.journal.read.record import JournalRecord
from weft.journal.segment.writer import sync_folder
from weft.journal.staging.parts import StagedPart, StagedParts, check_writer
from weft.wire.byteops import u32_at

# Prefix of writers of a single batch, which never return.
ONCE = "once-"
# Such a writer is forgotten this long after its batch was published: until then it may repeat the
# request because the answer was lost. Clients retry for at most ten minutes.
FORGOTTEN_S = 900.0
# At the limit of writers, queries that wrote nothing for this long are forgotten, too.
IDLE_S = 30 * 86_400.0
# Minimum interval between such searches, in seconds.
_FULL_S = 10.0

_STATE = "state.json"


class PublishedMark(msgspec.Struct, frozen=True, array_like=True):
    """Origin and publisher under which rows were published, and the journal's position before."""

    origin: int
    publisher: int
    position: int


class BatchCommit(msgspec.Struct, frozen=True):
    """Commit of a batch: its parts in order, with the number of rows of each."""

    writer: str
    batch: int
    parts: tuple[str, ...]
    rows: tuple[int, ...]
    marks: tuple[PublishedMark, ...] = ()


class WriterProgress(msgspec.Struct, frozen=True):
    """Progress of a writer: the last published batch, and the one being published."""

    done: int = -1
    order: BatchCommit | None = None


class Removed(NamedTuple):
    """Numbers of removed parts and writers."""

    parts: int
    writers: int


class Batches:
    """Writers of a service at one node; used by one thread."""

    def __init__(self, folder: Path, parts: StagedParts) -> None:
        self._folder = folder
        self._parts = parts
        self._looked_through_s = -_FULL_S

    def begin(self, order: BatchCommit, mark: PublishedMark) -> BatchCommit | None:
        """Record that a batch is being published; None if it is already published.

        Raises:
            BadOption: invalid name or number.
            NotKnown: a part is missing, incomplete, or has a different number of rows.
            OSError: the state cannot be read or written.
        """
        state = self._state(order.writer)
        if order.batch <= state.done:
            return None
        self.make_room(order.writer)
        if state.order is None:
            self._check(order)
        else:
            # The recorded commit counts, not parts staged in its place afterwards.
            order = state.order
        begun = msgspec.structs.replace(order, marks=(*order.marks, mark))
        self._write(order.writer, WriterProgress(state.done, begun))
        return begun

    def rows(self, order: BatchCommit) -> Iterator[bytes]:
        """Yield the rows of a batch in order, as groups of frames.

        Raises:
            NotKnown: a part is missing or damaged.
            OSError: a part cannot be read.
        """
        for name, rows in zip(order.parts, order.rows, strict=True):
            yield from self._parts.blocks(StagedPart(order.writer, order.batch, name), rows)

    def finish(self, order: BatchCommit) -> None:
        """Record that a batch is published, and remove its rows.

        Raises:
            OSError: the state cannot be written.
        """
        self._write(order.writer, WriterProgress(order.batch))
        self._parts.remove_until(order.writer, order.batch)

    def discard(self, parts: list[StagedPart]) -> None:
        """Remove rows that will not be committed; rows of a batch being published stay.

        Raises:
            BadOption: invalid name or number.
        """
        for part in parts:
            order = self._state(part.writer).order
            if order is None or order.batch != part.batch:
                self._parts.remove(part)

    def end(self, writer: str) -> None:
        """Remove a writer that has ended, unless a batch of it is being published.

        Raises:
            BadOption: invalid name.
            OSError: its folder cannot be removed.
        """
        if self._state(writer).order is None:
            self._parts.remove_writer(writer)

    def unfinished(self) -> list[BatchCommit]:
        """Remove abandoned rows; return the batches that were being published at the last exit.

        Raises:
            OSError: the states cannot be read.
        """
        self.tidy()
        orders = (self._state(folder.name).order for folder in sorted(self._folder.iterdir()))
        return [order for order in orders if order is not None]

    def make_room(self, writer: str) -> None:
        """Forget idle writers if there is no room for a new one; at most every _FULL_S.

        Raises:
            OSError: a folder cannot be read or removed.
        """
        if self._parts.is_full_for(writer) and monotonic() - self._looked_through_s >= _FULL_S:
            self._looked_through_s = monotonic()
            self.tidy(is_full=True)

    def tidy(self, *, is_full: bool = False) -> Removed:
        """Remove abandoned rows and writers that have ended, by their age.

        Raises:
            OSError: a folder cannot be read or removed.
        """
        parts = writers = 0
        with os.scandir(self._folder) as entries:
            ages = {entry.name: time() - entry.stat().st_mtime for entry in entries}
        # Any change in a folder updates its time, except appended rows.
        for writer in (name for name, age in ages.items() if age >= FORGOTTEN_S):
            names = [path.name for path in (self._folder / writer).iterdir()]
            if any(name.endswith(".rows") for name in names):
                order = self._state(writer).order
                parts += self._parts.remove_abandoned(writer, -1 if order is None else order.batch)
            elif self._has_ended(writer, names, is_full and ages[writer] >= IDLE_S):
                self._parts.remove_writer(writer)
                writers += 1
        return Removed(parts, writers)

    def _has_ended(self, writer: str, names: list[str], is_idle: bool) -> bool:
        """Return whether the state of an old writer without rows is no longer needed."""
        if _STATE not in names:
            return True
        if not (is_idle or writer.startswith(ONCE)):
            return False
        return self._state(writer).order is None

    def _check(self, order: BatchCommit) -> None:
        if len(order.parts) != len(order.rows):
            raise BadOption(f"{len(order.parts)} parts have {len(order.rows)} numbers of rows")
        for _ in self.rows(order):
            pass

    def _state(self, writer: str) -> WriterProgress:
        check_writer(writer)
        path = self._folder / writer / _STATE
        return (
            msgspec.json.decode(path.read_bytes(), type=WriterProgress)
            if path.exists()
            else WriterProgress()
        )

    def _write(self, writer: str, state: WriterProgress) -> None:
        path = self._folder / writer / _STATE
        self._parts.add_writer(writer)
        aside = path.with_suffix(".new")
        with open(aside, "wb", opener=staged_opener) as file:  # Path has no opener
            file.write(msgspec.json.encode(state))
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
        sync_folder(path.parent)
        sync_folder(self._folder)


def released_rows(root: Path, service: str, node: str, marks: tuple[PublishedMark, ...]) -> int:
    """Return the number of rows in the journal that were published under these marks.

    Raises:
        OSError: the journal cannot be read.
    """
    if not marks:
        return 0
    publishers = {(mark.origin, mark.publisher) for mark in marks}
    kept = history(root, service, node, min(mark.position for mark in marks))
    return sum(
        (u32_at(each.frame, 8), u32_at(each.frame, 12)) in publishers
        for each in kept
        if isinstance(each, JournalRecord)
    )
