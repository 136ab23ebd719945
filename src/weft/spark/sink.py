"""Spark sink, `format("weft")` to write: rows of a table become messages, exactly once.

Tasks stage their rows at the gateway, which does not deliver them yet. When Spark commits a batch,
the gateway publishes exactly the parts that Spark counted, and logs the batch as committed: a
repeated commit of the same batch has no effect.
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
from weft.spark.staging_client import StagedBatch, StagingClient

_log = logging.getLogger(__name__)

Messages = list[WriterCommitMessage | None]


@dataclass
class Staged(WriterCommitMessage):
    """Commit message of a task: the location of its rows; `part` is empty without rows."""

    batch: StagedBatch
    partition: int
    part: str
    rows: int


class _Writing:
    """Base of both writers."""

    # True if nothing follows the first batch, so that the gateway need not remember it.
    _ends_writer = False

    def __init__(self, schema: StructType, options: dict[str, str], *, overwrite: bool) -> None:
        if overwrite:
            raise BadOption("messages cannot be overwritten: write with mode 'append'")
        self._options = write_options(options)
        self._schema = schema
        # Reports invalid columns while the driver can still raise them.
        self._rows()

    def _rows(self) -> Rows:
        return Rows(to_arrow_schema(self._schema, timezone="UTC"), self._options.subject)

    def _stage(self, batch: StagedBatch, partition: int, found: Iterator[pa.RecordBatch]) -> Staged:
        rows = self._rows()
        # Another name for every attempt: only the one that Spark counts is committed.
        part = uuid.uuid4().hex
        with StagingClient(self._options) as gate:
            frames = (frame for each in found for frame in rows.frames(each))
            staged = gate.stage(batch, part, frames)
        return Staged(batch, partition, part if staged else "", staged)

    def _release(self, messages: Messages) -> None:
        staged = _with_rows(messages)
        if staged:
            with StagingClient(self._options) as gate:
                gate.release(staged[0].batch, {each.part: each.rows for each in staged})
                if self._ends_writer:
                    gate.end(staged[0].batch)

    def _discard(self, messages: Messages) -> None:
        staged = _with_rows(messages)
        if not staged:
            return
        try:
            with StagingClient(self._options) as gate:
                gate.discard(staged[0].batch, [each.part for each in staged])
                if self._ends_writer:
                    gate.end(staged[0].batch)
        except WeftError as error:
            # The gateway removes them later; the earlier failure matters more.
            _log.warning("staged rows were not removed: %s", error)


class WeftWriter(_Writing, DataSourceArrowWriter):
    """Writer of a table, as one batch."""

    def __init__(self, schema: StructType, options: dict[str, str], *, overwrite: bool) -> None:
        super().__init__(schema, options, overwrite=overwrite)
        self._batch = StagedBatch(f"{ONCE}{uuid.uuid4().hex}", 0)
        self._ends_writer = True

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one partition."""
        return self._stage(self._batch, _context().partitionId(), iterator)

    def commit(self, messages: Messages) -> None:
        """Commit the staged rows."""
        self._release(messages)

    def abort(self, messages: Messages) -> None:
        """Discard the staged rows."""
        self._discard(messages)


class WeftStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """Writer of a stream's batches, each exactly once."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of one partition of a batch."""
        context = _context()
        # Spark does not pass them, but sets them for every task of a stream.
        query = context.getLocalProperty("sql.streaming.queryId")
        number = context.getLocalProperty("streaming.sql.batchId")
        if query is None or number is None:
            raise BadOption("this Spark sets no query and batch for its tasks")
        return self._stage(StagedBatch(query, int(number)), context.partitionId(), iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: ARG002, N803  # Spark's
        """Commit the staged rows, unless this batch is committed already."""
        self._release(messages)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: ARG002, N803  # Spark's
        """Discard the staged rows."""
        self._discard(messages)


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise BadOption("rows can only be written in a Spark task")
    return context


def _with_rows(messages: Messages) -> list[Staged]:
    """Return the messages that have rows, in the order of their partitions."""
    staged = [each for each in messages if isinstance(each, Staged) and each.rows]
    return sorted(staged, key=lambda each: each.partition)
