"""Which batches of a writer are out, and which is on its way: written down before and after.

A batch that is out is never released again, however often its writer asks. One that was on its way
when the gateway was killed is released on from where it was: its rows went out under a publisher's
number of their own, so the journal itself says how many of them it has.
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
from weft.journal.read.record import Kept
from weft.journal.segment.writer import sync_folder
from weft.journal.staging.parts import Part, Parts, check_writer
from weft.wire.byteops import u32_at

# How the name begins of a writer of one batch, who has nothing to come back for.
ONCE = "once-"
# A writer of one batch is forgotten this long after its batch is out: until then a release may be
# asked for again, because its answer was lost. Clients ask for ten minutes at most.
FORGOTTEN_S = 900.0
# At the limit on writers, queries that wrote nothing for this long are forgotten, too.
IDLE_S = 30 * 86_400.0
# At the limit, folders are looked through this often at most.
_FULL_S = 10.0

_STATE = "state.json"


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """As whom rows were released, and the position that the journal had reached before."""

    origin: int
    publisher: int
    position: int


class Order(msgspec.Struct, frozen=True):
    """A batch that counts: these parts, in this order, with so many rows each."""

    writer: str
    batch: int
    parts: tuple[str, ...]
    rows: tuple[int, ...]
    marks: tuple[Mark, ...] = ()


class State(msgspec.Struct, frozen=True):
    """How far a writer is: the last batch that is out, and the one that is on its way."""

    done: int = -1
    order: Order | None = None


class Removed(NamedTuple):
    """Counts of the parts and writers that were removed."""

    parts: int
    writers: int


class Batches:
    """The writers of a service at one node; used by one thread."""

    def __init__(self, folder: Path, parts: Parts) -> None:
        self._folder = folder
        self._parts = parts
        self._looked_through_s = -_FULL_S

    def begin(self, order: Order, mark: Mark) -> Order | None:
        """Write down that a batch is on its way; None if it is out already.

        Raises:
            BadOption: a name or number that cannot be.
            NotKnown: a part is not here, or not complete, or has other rows.
            OSError: it cannot be read or written.
        """
        state = self._state(order.writer)
        if order.batch <= state.done:
            return None
        self.make_room(order.writer)
        if state.order is None:
            self._check(order)
        else:
            # What was on its way counts, and not what was staged in its place afterwards.
            order = state.order
        begun = msgspec.structs.replace(order, marks=(*order.marks, mark))
        self._write(order.writer, State(state.done, begun))
        return begun

    def rows(self, order: Order) -> Iterator[bytes]:
        """The rows of a batch in their order, as frames, some at a time.

        Raises:
            NotKnown: a part is gone or damaged.
            OSError: it cannot be read.
        """
        for name, rows in zip(order.parts, order.rows, strict=True):
            yield from self._parts.blocks(Part(order.writer, order.batch, name), rows)

    def finish(self, order: Order) -> None:
        """Write down that a batch is out, and remove its rows.

        Raises:
            OSError: it cannot be written.
        """
        self._write(order.writer, State(order.batch))
        self._parts.remove_until(order.writer, order.batch)

    def discard(self, parts: list[Part]) -> None:
        """Remove rows that do not count; not those of a batch that is on its way.

        Raises:
            BadOption: a name or number that cannot be.
        """
        for part in parts:
            order = self._state(part.writer).order
            if order is None or order.batch != part.batch:
                self._parts.remove(part)

    def end(self, writer: str) -> None:
        """Forget a writer that writes nothing more; not one whose batch is on its way.

        Raises:
            BadOption: a name that cannot be.
            OSError: it cannot be removed.
        """
        if self._state(writer).order is None:
            self._parts.remove_writer(writer)

    def unfinished(self) -> list[Order]:
        """The batches that were on their way when the gateway ended, after tidying up.

        Raises:
            OSError: they cannot be read.
        """
        self.tidy()
        orders = (self._state(folder.name).order for folder in sorted(self._folder.iterdir()))
        return [order for order in orders if order is not None]

    def make_room(self, writer: str) -> None:
        """Forget idle writers if there is no room for a new one; at most every ten seconds.

        Raises:
            OSError: they cannot be read or removed.
        """
        if self._parts.is_full_for(writer) and monotonic() - self._looked_through_s >= _FULL_S:
            self._looked_through_s = monotonic()
            self.tidy(is_full=True)

    def tidy(self, *, is_full: bool = False) -> Removed:
        """Remove abandoned rows and writers that have ended, by their age.

        Raises:
            OSError: they cannot be read or removed.
        """
        parts = writers = 0
        with os.scandir(self._folder) as entries:
            ages = {entry.name: time() - entry.stat().st_mtime for entry in entries}
        # Whatever happens in a folder makes it younger, but for rows that are appended.
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
        """Return whether nothing needs to be known any more of an old writer without rows."""
        if _STATE not in names:
            return True
        if not (is_idle or writer.startswith(ONCE)):
            return False
        return self._state(writer).order is None

    def _check(self, order: Order) -> None:
        if len(order.parts) != len(order.rows):
            raise BadOption(f"{len(order.parts)} parts have {len(order.rows)} numbers of rows")
        for _ in self.rows(order):
            pass

    def _state(self, writer: str) -> State:
        check_writer(writer)
        path = self._folder / writer / _STATE
        return msgspec.json.decode(path.read_bytes(), type=State) if path.exists() else State()

    def _write(self, writer: str, state: State) -> None:
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


def released_rows(root: Path, service: str, node: str, marks: tuple[Mark, ...]) -> int:
    """How many rows the journal has that were released as one of these.

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
        if isinstance(each, Kept)
    )
