"""Which batches of a writer are out, and which is on its way: written down before and after.

A batch that is out is never released again, however often its writer asks. One that was on its way
when the gateway was killed is released on from where it was: its rows went out under a publisher's
number of their own, so the journal itself says how many of them it has.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from time import time

import msgspec

from weft.core.words import u32_at
from weft.errors import BadOption
from weft.journal.history import history
from weft.journal.kept import Kept
from weft.journal.parts import ABANDONED_S, Part, Parts, check_writer
from weft.journal.segment import sync_folder

# How the name begins of a writer of one batch, who has nothing to come back for.
ONCE = "once-"

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


class Batches:
    """The writers of a service at one node; used by one thread."""

    def __init__(self, folder: Path, parts: Parts) -> None:
        self._folder = folder
        self._parts = parts

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

    def unfinished(self) -> list[Order]:
        """The batches that were on their way when the gateway ended, after tidying up.

        Raises:
            OSError: they cannot be read.
        """
        found = []
        for folder in sorted(self._folder.iterdir()):
            order = self._state(folder.name).order
            self._parts.remove_abandoned(folder.name, -1 if order is None else order.batch)
            if order is not None:
                found.append(order)
            elif folder.name.startswith(ONCE) and folder.stat().st_mtime < time() - ABANDONED_S:
                shutil.rmtree(folder)
        return found

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
        path.parent.mkdir(exist_ok=True)
        aside = path.with_suffix(".new")
        with aside.open("wb") as file:
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
