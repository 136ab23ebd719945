"""Ends of journals, found repeatedly without reading the segments again."""

from pathlib import Path
from typing import NamedTuple

from weft.journal.journal_id import identities_in, ids_in
from weft.journal.read.messages import mapped
from weft.journal.segment.blocks import Block, blocks_in, salt_of
from weft.journal.segment.file_names import Segment, segments_of

Positions = dict[str, int]


class Extent(NamedTuple):
    """First and next positions of the journals of a service, and their ids, by node."""

    starts: Positions
    ends: Positions
    ids: dict[str, str]


class Tails:
    """Tails of the journals of one service: of one node, or of all."""

    def __init__(self, root: Path, service: str, node: str | None = None) -> None:
        self._root = root
        self._service = service
        self._node = node
        # For each open segment: the offset read so far, and the next position.
        self._seen: dict[Path, tuple[int, int]] = {}
        self._ids: dict[str, str] = {}

    def extent(self, *, is_complete: bool = True) -> Extent:  # noqa: ARG002  # all nodes are local
        """Return every node's first and next position, and the id of its journal.

        Raises:
            OSError: a file cannot be read.
        """
        ids = self.ids()
        starts, ends = self.starts(), self.ends()
        # A journal without segments begins at its next position.
        return Extent({node: starts.get(node, end) for node, end in ends.items()}, ends, ids)

    def ends(self) -> dict[str, int]:
        """Return the next position of every node.

        Raises:
            OSError: a segment cannot be read.
        """
        identities = identities_in(self._root, self._service, self._node)
        ids = {node: identity.id for node, identity in identities.items()}
        if ids != self._ids:
            # A journal that was created again may have files of the same names.
            self._seen.clear()
            self._ids = ids
        # The numbering continues even if every segment was removed.
        found = {node: identity.next for node, identity in identities.items()}
        open_ones: dict[Path, tuple[int, int]] = {}
        for segment in segments_of(self._root, self._service, self._node):
            end = segment.last + 1
            if segment.state == "open":
                seen = self._end_of(segment)
                open_ones[segment.path] = seen
                end = seen[1]
            found[segment.node] = max(found.get(segment.node, 0), end)
        self._seen = open_ones
        return found

    def starts(self) -> dict[str, int]:
        """Return the first available position of every node."""
        found: dict[str, int] = {}
        for segment in segments_of(self._root, self._service, self._node):
            found.setdefault(segment.node, segment.first)
        return found

    def ids(self) -> dict[str, str]:
        """Return the id of every node's journal.

        Raises:
            OSError: unreadable file.
        """
        return ids_in(self._root, self._service, self._node)

    def _end_of(self, segment: Segment) -> tuple[int, int]:
        at, position = self._seen.get(segment.path, (0, segment.first))
        try:
            with mapped(segment.path) as data:
                salt = salt_of(data)
                # Damage followed by blocks is a gap, not the end.
                for block in blocks_in(data, at, salt):
                    if isinstance(block, Block):
                        at = block.end
                        position = max(position, block.first + block.frames)
        except FileNotFoundError:
            # Completed meanwhile: the next call finds it under its new name.
            return at, position
        return at, position
