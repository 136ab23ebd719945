"""`format("weft")` to read: a journal as a table, at once or as it grows.

Offsets are the next position of every node, so a query that is restarted from its checkpoint reads
each message once. Where a position is, sealed or open, is looked up when it is read.
"""

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

from weft.errors import BadOption
from weft.journal.ranges import Range, batches_in
from weft.journal.shelves import Ends, Positions
from weft.spark.columns import STANDARD, as_asked, columns_for
from weft.spark.options import Offsets, ReadOptions, read_options
from weft.spark.sink import WeftStreamWriter, WeftWriter

# No partition is worth a task of its own below this.
_LEAST_ROWS = 10_000
# Unless it is told otherwise, a partition has between so many rows and so many.
_USUAL_ROWS = (100_000, 500_000)


@dataclass
class Part(InputPartition):
    """A stretch of one node's journal."""

    place: Range


class WeftSource(DataSource):
    """The journals of one service, of all nodes that share a folder or are asked."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "weft"

    def schema(self) -> str:
        """The columns, unless others are asked for."""
        return STANDARD

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read what is there."""
        return WeftReader(schema, dict(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Write a table."""
        return WeftWriter(schema, dict(self.options), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # Spark's
        """Write batch after batch."""
        return WeftStreamWriter(schema, dict(self.options), overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's
        """Read what is there, and what comes."""
        return WeftStreamReader(schema, dict(self.options))


class _Reading:
    """What both readers do."""

    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        self._schema = schema
        self._options = read_options(options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of one partition; called where the work is done."""
        if not isinstance(partition, Part):
            # What an empty list of partitions becomes.
            return
        arrow = to_arrow_schema(self._schema, timezone="UTC")
        options = self._options
        found = batches_in(
            partition.place,
            options.patterns,
            may_lack=options.may_lack,
            columns=columns_for(arrow),
        )
        for batch in found:
            yield as_asked(batch, arrow, partition.place)

    def _parts(self, start: Positions, end: Positions) -> list[Part]:
        options = self._options
        rows = sum(end[node] - start.get(node, 0) for node in end)
        each = _rows_of_each(rows, options.min_partitions)
        return [
            Part(Range(options.shelf, node, first, min(first + each, end[node])))
            for node in sorted(end)
            for first in range(start.get(node, 0), end[node], each)
        ]


class WeftReader(_Reading, DataSourceReader):
    """Reads from one set of positions to another."""

    def partitions(self) -> Sequence[InputPartition]:
        """What there is to do."""
        options = self._options
        tails = options.shelf.watch()
        start = _starting(options, tails, default="earliest")
        ending = options.ending
        end = tails.ends()
        if isinstance(ending, dict):
            end = {node: min(ending[node], end.get(node, 0)) for node in ending}
        elif ending == "earliest":
            raise BadOption("endingOffsets cannot be 'earliest'")
        return self._parts(
            start, {node: max(last, start.get(node, 0)) for node, last in end.items()}
        )


class WeftStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads on, a batch at a time."""

    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        super().__init__(schema, options)
        self._tails = self._options.shelf.watch()
        self._frozen: Positions | None = None

    def initialOffset(self) -> Positions:  # noqa: N802  # Spark's
        """Where a new query begins."""
        return _starting(self._options, self._tails, default="latest")

    def latestOffset(self, start: Positions, limit: ReadLimit) -> Positions:  # noqa: N802  # Spark's
        """How far the next batch goes."""
        ends = self._tails.ends() if self._frozen is None else self._frozen
        firsts = self._tails.starts()
        reached = {node: max(end, start.get(node, 0)) for node, end in ends.items()}
        if isinstance(limit, ReadAllAvailable) or not isinstance(limit, ReadMaxRows):
            return {**start, **reached}
        return _limited(start, reached, firsts, limit.max_rows)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's
        """How much a batch may hold."""
        rows = self._options.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def reportLatestOffset(self) -> Positions:  # noqa: N802  # Spark's
        """Where the journal ends, for whoever wants to know how far behind a query is."""
        return self._tails.ends()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's
        """Go no further than the journal goes now."""
        self._frozen = self._tails.ends()

    def partitions(self, start: Positions, end: Positions) -> Sequence[InputPartition]:
        """What there is to do in a batch; a node that is new begins with its first position."""
        firsts = self._tails.starts()
        begin = {node: start.get(node, firsts.get(node, 0)) for node in end}
        return self._parts(begin, end)

    def commit(self, end: Positions) -> None:
        """Nothing is kept for a query: the journal has its own bounds."""


def _rows_of_each(rows: int, min_partitions: int | None) -> int:
    """How many rows a partition has; without a wish, this machine's cores get one each."""
    if min_partitions is not None:
        return max(-(-rows // min_partitions), _LEAST_ROWS)
    least, most = _USUAL_ROWS
    return min(max(-(-rows // len(os.sched_getaffinity(0))), least), most)


def _starting(options: ReadOptions, tails: Ends, default: Offsets) -> Positions:
    starting = options.starting
    if options.starting_ns is not None:
        return {node: _position_at(options, node, end) for node, end in tails.ends().items()}
    if starting is None:
        starting = default
    if isinstance(starting, dict):
        return tails.starts() | starting
    return tails.starts() if starting == "earliest" else tails.ends()


def _position_at(options: ReadOptions, node: str, end: int) -> int:
    found = options.shelf.position_at(node, options.starting_ns or 0)
    return end if found is None else found


def _limited(start: Positions, ends: Positions, firsts: Positions, rows: int) -> Positions:
    """As far as so many rows reach, shared by the nodes as evenly as what they have."""
    reached: dict[str, Any] = dict(start)
    waiting = {node: end - start.get(node, firsts.get(node, 0)) for node, end in ends.items()}
    left = rows
    for done, node in enumerate(sorted(waiting, key=lambda each: waiting[each])):
        share = min(waiting[node], -(-left // (len(waiting) - done)))
        reached[node] = start.get(node, firsts.get(node, 0)) + share
        left -= share
    return reached
