"""Sources of a journal: a local folder, or anything else that provides its segments."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from weft.journal.parquet.sealed_files import CHECKED
from weft.journal.read.history_pages import JournalPages
from weft.journal.read.messages import mapped
from weft.journal.segment.block_index import LANDMARKS
from weft.journal.segment.blocks import Bytes, salt_of
from weft.journal.segment.file_names import Segment, segments_of
from weft.journal.segment.tail import Extent, Positions, Tails


class Stretch(NamedTuple):
    """Blocks of a segment, the offset to start reading at, and their salt."""

    data: Bytes
    start: int
    salt: int


class JournalBounds(Protocol):
    """First and next positions of the journals of a service, by node; read repeatedly."""

    def extent(self, *, is_complete: bool = True) -> Extent:
        """Return every node's first and next position, and the id of its journal.

        Args:
            is_complete: Whether to wait for nodes that do not answer. Otherwise they are left out,
                as long as one answers.
        """

    def ends(self) -> Positions:
        """Return the next position of every node."""

    def starts(self) -> Positions:
        """Return the first available position of every node."""

    def ids(self) -> dict[str, str]:
        """Return the id of every node's journal: with another id, positions began again.

        A node whose journal has no id, created by an older gateway, is left out.
        """


class Shelf(Protocol):
    """Journals of one service; can be pickled and sent to workers."""

    @property
    def service(self) -> str:
        """The name of the service."""

    def watch(self) -> JournalBounds:
        """Return an object that finds their ends."""

    def position_at(self, node: str, time_ns: int) -> int | None:
        """Return the first position at or after a time; None if there is none."""

    def segments(self, node: str) -> list[Segment]:
        """Return the segments of one node, by first position."""

    def sealed(self, segment: Segment) -> Any:
        """Return a sealed segment as a source for a Parquet reader.

        Raises:
            Damaged: its checksum is wrong.
            FileNotFoundError: it was renamed.
        """

    def blocks(self, segment: Segment, first: int, end: int) -> Iterator[Stretch]:
        """Yield ranges of a segment that is not sealed.

        Raises:
            FileNotFoundError: it was renamed.
        """


@dataclass(frozen=True, slots=True)
class FolderShelf:
    """Journals in a local folder."""

    root: Path
    service: str

    def watch(self) -> Tails:
        """Return an object that finds their ends."""
        return Tails(self.root, self.service)

    def position_at(self, node: str, time_ns: int) -> int | None:
        """Return the first position at or after a time; None if there is none."""
        return JournalPages(self.root, self.service, node).position_at(time_ns)

    def segments(self, node: str) -> list[Segment]:
        """Return the segments of one node, by first position."""
        return segments_of(self.root, self.service, node)

    def sealed(self, segment: Segment) -> Path:
        """Return the path of a sealed segment.

        Raises:
            Damaged: its checksum is wrong.
            OSError: it cannot be read, or was renamed.
        """
        CHECKED.check(segment)
        return segment.path

    def blocks(self, segment: Segment, first: int, end: int) -> Iterator[Stretch]:  # noqa: ARG002  # other sources need it
        """Yield all of a segment that is not sealed, with the offset to start reading at."""
        with mapped(segment.path) as data:
            salt = salt_of(data, is_full=segment.state == "full")
            yield Stretch(data, LANDMARKS.start(segment.path, data, first, salt), salt)
