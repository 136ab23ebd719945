"""Spark source, `format("weft")` to read: a journal as a table, in batches or as a stream.

Offsets are the next position of every node, so a query that restarts from its checkpoint reads each
message once. Whether a position is in a sealed or an open segment is looked up when it is read.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from weft.errors import BadOption, NotKnown
from weft.journal.read.arrow_batches import Range, batches_in
from weft.journal.read.sources import FolderShelf
from weft.journal.segment.file_names import services_in
from weft.journal.segment.tail import Extent, Positions
from weft.spark.columns import STANDARD, Layout
from weft.spark.offsets import (
    Offset,
    RowShares,
    begun_again,
    checked_offsets,
    offset_of,
    resumed,
    vanished,
    went_back,
)
from weft.spark.options import Offsets, ReadOptions, read_options
from weft.spark.sink import WeftStreamWriter, WeftWriter

_log = logging.getLogger(__name__)

# A smaller partition is not worth a task.
_LEAST_ROWS = 10_000
# Bounds of the rows per partition, unless minPartitions is set.
_USUAL_ROWS = (100_000, 500_000)


@dataclass
class JournalPartition(InputPartition):
    """Range of one node's journal."""

    place: Range


class WeftSource(DataSource):
    """Journals of one service, of all nodes in a folder or of the given gateways."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "weft"

    def schema(self) -> str:
        """Return the default columns."""
        return STANDARD

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader for a batch query."""
        return WeftReader(schema, dict(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer for a table."""
        return WeftWriter(schema, dict(self.options), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # Spark's
        """Return a writer for the batches of a stream."""
        return WeftStreamWriter(schema, dict(self.options), overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's
        """Return a reader for a stream."""
        return WeftStreamReader(schema, dict(self.options))


class _Reading:
    """Base of both readers."""

    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        self._schema = schema
        self._options = read_options(options)
        # Reports invalid options while the driver can still raise them.
        self._layout()
        _check_service(self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one partition; called in the task."""
        if not isinstance(partition, JournalPartition):
            # Spark passes None in place of an empty list of partitions.
            return
        layout, options = self._layout(), self._options
        found = batches_in(
            partition.place, options.patterns, may_lack=options.may_lack, columns=layout.needed
        )
        malformed = 0
        for batch in found:
            rows, positions = layout.rows(batch, partition.place)
            if positions and not malformed:
                _log.warning(
                    "the message at position %d of node %s does not fit its columns",
                    positions[0],
                    partition.place.node,
                )
            malformed += len(positions)
            yield rows
        if malformed > 1:
            _log.warning("%d messages of this partition do not fit their columns", malformed)

    def _layout(self) -> Layout:
        arrow = to_arrow_schema(self._schema, timezone="UTC")
        return Layout(arrow, self._options.parsing)

    def _parts(self, start: Positions, end: Positions) -> list[JournalPartition]:
        options = self._options
        rows = sum(end[node] - start.get(node, 0) for node in end)
        each = _rows_of_each(rows, options.min_partitions)
        return [
            JournalPartition(Range(options.shelf, node, first, min(first + each, end[node])))
            for node in sorted(end)
            for first in range(start.get(node, 0), end[node], each)
        ]


class WeftReader(_Reading, DataSourceReader):
    """Reader of a range of positions."""

    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions to read."""
        options = self._options
        extent = options.shelf.watch().extent()
        start = _starting(options, extent, default="earliest")
        ending = options.ending
        end = extent.ends
        if isinstance(ending, dict):
            end = checked_offsets("endingOffsets", ending, extent, may_lack=options.may_lack)
            _check_order(options, start, end)
        elif ending == "earliest":
            raise BadOption("endingOffsets cannot be 'earliest'")
        return self._parts(
            start, {node: max(last, start.get(node, 0)) for node, last in end.items()}
        )


class WeftStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of a stream, one batch at a time."""

    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        super().__init__(schema, options)
        if self._options.ending != "latest":
            raise BadOption("a stream does not end: endingOffsets is for batches")
        self._tails = self._options.shelf.watch()
        self._frozen: Extent | None = None
        self._shares = RowShares()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return the offset at which a new query starts."""
        extent = self._tails.extent()
        return Offset(_starting(self._options, extent, default="latest"), extent.ids).as_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return the end offset of the next batch."""
        before = offset_of(start)
        extent = self._frozen or self._tails.extent(is_complete=False)
        self._check_all_there(before, extent)
        begin = resumed(before, extent, may_lack=self._options.may_lack)
        self._check_backwards(begin, extent)
        rows = {node: max(end - begin[node], 0) for node, end in extent.ends.items()}
        if isinstance(limit, ReadMaxRows):
            rows = self._shares.split(rows, limit.max_rows)
        reached = {node: begin[node] + count for node, count in rows.items()}
        ids = {**before.ids, **extent.ids}
        return Offset({**before.positions, **reached}, ids).as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's
        """Return the limit on rows per batch."""
        rows = self._options.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return the end of the journal, from which Spark computes how far behind a query is."""
        extent = self._tails.extent(is_complete=False)
        return Offset(extent.ends, extent.ids).as_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's
        """Fix the end of the query at the current end of the journal."""
        self._frozen = self._tails.extent()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the partitions of a batch; a new node starts at its first position."""
        before, after = offset_of(start), offset_of(end)
        extent = self._tails.extent(is_complete=False)
        begin: Positions = {}
        for node in after.positions:
            first = extent.starts.get(node, 0)
            if after.is_of_other_journal(node, extent.ids):
                if not self._options.may_lack:
                    raise begun_again(node, after, extent)
                # The messages that this batch had are lost.
                first = after.positions[node]
            elif not before.is_of_other_journal(node, after.ids):
                first = before.positions.get(node, first)
            begin[node] = first
        return self._parts(begin, after.positions)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the journal's retention does not depend on queries."""

    def _check_all_there(self, before: Offset, extent: Extent) -> None:
        """Check that no journal has been removed from the folder; a gateway may be unreachable.

        Raises:
            Lost: A journal was removed, and failOnDataLoss is set.
        """
        options = self._options
        if options.may_lack or not isinstance(options.shelf, FolderShelf):
            return
        # A journal without an id may have lost its last segments to retention.
        if gone := before.ids.keys() - extent.ends.keys():
            raise vanished(min(gone), before)

    def _check_backwards(self, begin: Positions, extent: Extent) -> None:
        """Check that no journal ends before the read position; without failOnDataLoss, go back.

        Raises:
            Lost: A journal does, and failOnDataLoss is set.
        """
        ahead = [node for node, position in begin.items() if position > extent.ends[node]]
        if not ahead:
            return
        # While a file is renamed its end may be invisible: check again.
        now = self._tails.extent(is_complete=False)
        for node in ahead:
            if node in now.ends and begin[node] > now.ends[node]:
                if not self._options.may_lack:
                    raise went_back(node, begin[node], now)
                begin[node] = now.ends[node]


def _rows_of_each(rows: int, min_partitions: int | None) -> int:
    """Return the rows per partition; by default one partition per CPU, within _USUAL_ROWS."""
    if min_partitions is not None:
        return max(-(-rows // min_partitions), _LEAST_ROWS)
    least, most = _USUAL_ROWS
    return min(max(-(-rows // len(os.sched_getaffinity(0))), least), most)


def _check_service(options: ReadOptions) -> None:
    """Check that a folder has a journal of the service; gateways are asked when they are read.

    Raises:
        NotKnown: It has none.
    """
    shelf = options.shelf
    if isinstance(shelf, FolderShelf):
        known = services_in(shelf.root)
        if shelf.service not in known:
            raise NotKnown(
                f"{shelf.root} has no journal of service {shelf.service!r}; services there:"
                f" {', '.join(known) or 'none'}"
            )


def _check_order(options: ReadOptions, start: Positions, end: Positions) -> None:
    """Check that no node's end is before its start.

    Raises:
        BadOption: A node's is, or a node has a start and no end.
    """
    starting = options.starting
    if isinstance(starting, dict) and (unused := starting.keys() - end.keys()):
        raise BadOption(
            f"startingOffsets names {', '.join(sorted(unused))}; endingOffsets, which selects the"
            " nodes to read, does not"
        )
    is_early = starting in (None, "earliest")
    # A start time may be after the last message, and the first messages may be missing.
    if options.starting_ns is not None or (is_early and options.may_lack):
        return
    for node, last in end.items():
        if start[node] > last:
            raise BadOption(
                f"endingOffsets is position {last} of node {node}, which begins at {start[node]}"
            )


def _starting(options: ReadOptions, extent: Extent, default: Offsets) -> Positions:
    starting = options.starting
    if options.starting_ns is not None:
        return {node: _position_at(options, node, end) for node, end in extent.ends.items()}
    if starting is None:
        starting = default
    if isinstance(starting, dict):
        may_lack = options.may_lack
        return extent.starts | checked_offsets(
            "startingOffsets", starting, extent, may_lack=may_lack
        )
    return extent.starts if starting == "earliest" else extent.ends


def _position_at(options: ReadOptions, node: str, end: int) -> int:
    found = options.shelf.position_at(node, options.starting_ns or 0)
    return end if found is None else found
