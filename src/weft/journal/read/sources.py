"""Where a journal can be read from: a folder, or whatever else gives its segments."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from weft.journal.parquet.sealed_files import CHECKED
from weft.journal.read.history_pages import Pages
from weft.journal.read.messages import mapped
from weft.journal.segment.block_index import LANDMARKS
from weft.journal.segment.blocks import Bytes, salt_of
from weft.journal.segment.file_names import Segment, segments_of
from weft.journal.segment.tail import Extent, Positions, Tails


class Stretch(NamedTuple):
    """Blocks of a segment, where among them to begin to read, and the salt that they have."""

    data: Bytes
    start: int
    salt: int


class Ends(Protocol):
    """Where the journals of a service begin and end, node by node; asked again and again."""

    def extent(self, *, is_complete: bool = True) -> Extent:
        """Return where every node's journal begins and ends, and its id.

        Args:
            is_complete: Whether to wait for nodes that do not answer. Otherwise they are left out,
                as long as one answers.
        """

    def ends(self) -> Positions:
        """The next position of every node."""

    def starts(self) -> Positions:
        """The first position that every node still has."""

    def ids(self) -> dict[str, str]:
        """Return the id of every node's journal: another one means that positions began anew.

        A node whose journal has none, as it was begun by an older gateway, is left out.
        """


class Shelf(Protocol):
    """The journals of one service; it can be sent to where the work is done."""

    @property
    def service(self) -> str:
        """Whose they are."""

    def watch(self) -> Ends:
        """Look where they begin and end."""

    def position_at(self, node: str, time_ns: int) -> int | None:
        """The first position at a time or after it; None if there is none."""

    def segments(self, node: str) -> list[Segment]:
        """What there is of one node, by first position."""

    def sealed(self, segment: Segment) -> Any:
        """A sealed segment, as a reader of Parquet takes it.

        Raises:
            Damaged: it is not what was sealed.
            FileNotFoundError: it has another name now.
        """

    def blocks(self, segment: Segment, first: int, end: int) -> Iterator[Stretch]:
        """Stretches of any other segment.

        Raises:
            FileNotFoundError: it has another name now.
        """


@dataclass(frozen=True, slots=True)
class FolderShelf:
    """The journals in a folder of this machine."""

    root: Path
    service: str

    def watch(self) -> Tails:
        """Look where they begin and end."""
        return Tails(self.root, self.service)

    def position_at(self, node: str, time_ns: int) -> int | None:
        """The first position at a time or after it; None if there is none."""
        return Pages(self.root, self.service, node).position_at(time_ns)

    def segments(self, node: str) -> list[Segment]:
        """What there is of one node, by first position."""
        return segments_of(self.root, self.service, node)

    def sealed(self, segment: Segment) -> Path:
        """A sealed segment.

        Raises:
            Damaged: it is not what was sealed.
            OSError: it cannot be read, or has another name now.
        """
        CHECKED.check(segment)
        return segment.path

    def blocks(self, segment: Segment, first: int, end: int) -> Iterator[Stretch]:  # noqa: ARG002  # others need the end
        """All of a segment that is not sealed, and where in it to begin to read."""
        with mapped(segment.path) as data:
            salt = salt_of(data, is_full=segment.state == "full")
            yield Stretch(data, LANDMARKS.start(segment.path, data, first, salt), salt)
