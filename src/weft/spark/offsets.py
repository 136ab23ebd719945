"""Offsets of a stream: the next position of every node, and the id of the journal it belongs to.

As JSON, `{"london": 4711, "@journals": {"london": "5f0c…"}}`. Positions are unique within one id,
so a journal that was deleted and created again under the same name is detected. Offsets stored
before journals had ids lack the second key, and so do journals of older gateways.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from weft.errors import BadOption
from weft.journal.read.arrow_batches import Lost
from weft.journal.segment.tail import Extent, Positions

# Not a valid node name.
_JOURNALS = "@journals"


class Offset(NamedTuple):
    """The next position of every node, and the ids of their journals, where they are known."""

    positions: Positions
    ids: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        """Return what Spark stores."""
        return {**self.positions, _JOURNALS: self.ids} if self.ids else dict(self.positions)

    def is_of_other_journal(self, node: str, ids: Mapping[str, str]) -> bool:
        """Return whether the journal of a node is another one than that of this offset."""
        return node in self.ids and node in ids and self.ids[node] != ids[node]


def offset_of(stored: Mapping[str, Any]) -> Offset:
    """Return the offset that Spark stored."""
    positions = {node: int(at) for node, at in stored.items() if node != _JOURNALS}
    return Offset(positions, dict(stored.get(_JOURNALS, {})))


def resumed(start: Offset, extent: Extent, *, may_lack: bool) -> Positions:
    """Return the position at which reading continues in every existing node.

    A new node starts at its first position, and so does a recreated journal without
    failOnDataLoss.

    Raises:
        Lost: A journal was recreated, and failOnDataLoss is set.
    """
    begin: Positions = {}
    for node in extent.ends:
        is_other = start.is_of_other_journal(node, extent.ids)
        if is_other and not may_lack:
            raise begun_again(node, start, extent)
        first = extent.starts.get(node, 0)
        begin[node] = first if is_other else start.positions.get(node, first)
    return begin


def checked_offsets(option: str, given: Positions, extent: Extent, *, may_lack: bool) -> Positions:
    """Return offsets given as an option, limited to the end of each journal.

    Raises:
        BadOption: A node has no journal, or its journal ends before and failOnDataLoss is set.
    """
    for node, position in given.items():
        if node not in extent.ends:
            known = ", ".join(sorted(extent.ends)) or "none"
            raise BadOption(f"{option} names node {node!r}; journals there are of: {known}")
        if position > extent.ends[node] and not may_lack:
            raise BadOption(
                f"{option} is position {position} of node {node}, whose journal ends at"
                f" {extent.ends[node]}; failOnDataLoss=false takes its end instead"
            )
    return {node: min(position, extent.ends[node]) for node, position in given.items()}


def begun_again(node: str, start: Offset, extent: Extent) -> Lost:
    """Return the error for a journal that is not the one that was read before."""
    return Lost(
        f"the journal of node {node} was begun again: it has the id {extent.ids[node]}, and was"
        f" read up to position {start.positions[node]} when it had {start.ids[node]};"
        " failOnDataLoss=false reads the new one from its beginning"
    )


def went_back(node: str, position: int, extent: Extent) -> Lost:
    """Return the error for a journal that ends before the read position."""
    return Lost(
        f"the journal of node {node} ends at position {extent.ends[node]}, and was read up to"
        f" position {position} before: it was begun again, or lost its end;"
        " failOnDataLoss=false goes on from its end"
    )


def vanished(node: str, start: Offset) -> Lost:
    """Return the error for a journal that was removed."""
    return Lost(
        f"the journal of node {node} was removed; it was read up to position"
        f" {start.positions[node]}; failOnDataLoss=false goes on without it"
    )


class RowShares:
    """Splits the rows of a batch among nodes, in proportion to the rows that each has waiting.

    So the backlogs of all nodes shrink together, and their event times stay close to each other.
    Fractions of a row are carried over to the next batch.
    """

    def __init__(self) -> None:
        self._owed: dict[str, float] = {}

    def split(self, waiting: Positions, rows: int) -> Positions:
        """Return the rows of each node: all that wait, or `rows` together."""
        total = sum(waiting.values())
        if total <= rows:
            self._owed.clear()
            return dict(waiting)
        owed = {
            node: self._owed.get(node, 0.0) + rows * (count / total)
            for node, count in waiting.items()
        }
        left = rows
        shares = dict.fromkeys(waiting, 0)
        for node in sorted(owed, key=lambda each: owed[each], reverse=True):
            shares[node] = min(max(int(owed[node]) - 1, 0), waiting[node], left)
            left -= shares[node]
        # A few rows are left, at most two of each node.
        while left:
            open_nodes = [node for node in waiting if shares[node] < waiting[node]]
            shares[max(open_nodes, key=lambda each: owed[each] - shares[each])] += 1
            left -= 1
        self._owed = {node: owed[node] - shares[node] for node in waiting}
        return shares
