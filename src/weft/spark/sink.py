"""`format("weft")` to write: rows of a table become messages, each once.

Tasks stage their rows at the gateway, where nobody gets them. When Spark says that a batch is
complete, the gateway releases exactly the parts that Spark counted, and writes down that this batch
is out; asked again for the same one, it does nothing.
"""

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from weft.errors import BadOption, WeftError
from weft.journal.staging.batches import ONCE
from weft.spark.options import write_options
from weft.spark.row_encoder import Rows
from weft.spark.staging_client import Batch, Gate

_log = logging.getLogger(__name__)

Messages = list[WriterCommitMessage | None]


@dataclass
class Staged(WriterCommitMessage):
    """What a task tells the driver: where its rows are; there is no part if there were none."""

    batch: Batch
    partition: int
    part: str
    rows: int


class _Writing:
    """What both writers do."""

    # Whether nothing follows the first batch, so that the gateway need not remember it.
    _ends_writer = False

    def __init__(self, schema: StructType, options: dict[str, str], *, overwrite: bool) -> None:
        if overwrite:
            raise BadOption("messages cannot be overwritten: write with mode 'append'")
        self._options = write_options(options)
        self._schema = schema
        # Also says what is wrong with the columns while the driver can still be told.
        self._rows()

    def _rows(self) -> Rows:
        return Rows(to_arrow_schema(self._schema, timezone="UTC"), self._options.subject)

    def _stage(self, batch: Batch, partition: int, found: Iterator[pa.RecordBatch]) -> Staged:
        rows = self._rows()
        # Another name for every attempt: only the one that Spark counts is released.
        part = uuid.uuid4().hex
        with Gate(self._options) as gate:
            frames = (frame for each in found for frame in rows.frames(each))
            staged = gate.stage(batch, part, frames)
        return Staged(batch, partition, part if staged else "", staged)

    def _release(self, messages: Messages) -> None:
        staged = _with_rows(messages)
        if staged:
            with Gate(self._options) as gate:
                gate.release(staged[0].batch, {each.part: each.rows for each in staged})
                if self._ends_writer:
                    gate.end(staged[0].batch)

    def _discard(self, messages: Messages) -> None:
        staged = _with_rows(messages)
        if not staged:
            return
        try:
            with Gate(self._options) as gate:
                gate.discard(staged[0].batch, [each.part for each in staged])
                if self._ends_writer:
                    gate.end(staged[0].batch)
        except WeftError as error:
            # They are removed anyway, if later; what failed before matters more.
            _log.warning("staged rows were not removed: %s", error)


class WeftWriter(_Writing, DataSourceArrowWriter):
    """Writes a table, once."""

    def __init__(self, schema: StructType, options: dict[str, str], *, overwrite: bool) -> None:
        super().__init__(schema, options, overwrite=overwrite)
        self._batch = Batch(f"{ONCE}{uuid.uuid4().hex}", 0)
        self._ends_writer = True

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one partition."""
        return self._stage(self._batch, _context().partitionId(), iterator)

    def commit(self, messages: Messages) -> None:
        """Release what was staged."""
        self._release(messages)

    def abort(self, messages: Messages) -> None:
        """Remove what was staged."""
        self._discard(messages)


class WeftStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """Writes the batches of a stream, each once."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one partition of a batch."""
        context = _context()
        # Spark does not pass them, but every task of a stream has them.
        query = context.getLocalProperty("sql.streaming.queryId")
        number = context.getLocalProperty("streaming.sql.batchId")
        if query is None or number is None:
            raise BadOption("this Spark does not tell its tasks which batch they work on")
        return self._stage(Batch(query, int(number)), context.partitionId(), iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: ARG002, N803  # Spark's
        """Release what was staged, unless this batch is out already."""
        self._release(messages)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: ARG002, N803  # Spark's
        """Remove what was staged."""
        self._discard(messages)


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise BadOption("rows are written by the tasks of Spark only")
    return context


def _with_rows(messages: Messages) -> list[Staged]:
    """Those that have rows, in the order of their partitions."""
    staged = [each for each in messages if isinstance(each, Staged) and each.rows]
    return sorted(staged, key=lambda each: each.partition)
