"""Where a result goes: to a folder of Parquet, or to a subject as messages.

A row that is published to one subject is a message with its columns as fields. A column that would
be the whole body, or say where answers go, is a field, too: `payload` becomes `of_payload`.
"""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from weft.core.subjects import checked_subject
from weft.errors import BadOption
from weft.pipeline.job import OutputMode

_OF_A_MESSAGE = ("reply", "payload", "flags")


@dataclass(frozen=True, slots=True)
class Flow:
    """How a stream goes on: when it works, what it gives, and where it keeps how far it is."""

    trigger_s: float | None
    output_mode: OutputMode
    checkpoint: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of Parquet files, here or where a URL says."""

    path: str

    def write(self, result: DataFrame) -> None:
        """Write a result, all of it.

        Raises:
            BadOption: something is there already.
        """
        here = Path(self.path)
        if here.is_dir() and any(here.iterdir()):
            raise BadOption(f"{self.path} is not empty: give a new folder")
        result.write.mode("append").parquet(for_spark(self.path))

    def start(self, result: DataFrame, flow: Flow) -> StreamingQuery:
        """Write a result as it grows."""
        writer = result.writeStream.format("parquet").option("path", for_spark(self.path))
        return started(writer, flow)


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject at a gateway; without one, every row has its own."""

    gateway: str
    service: str
    subject: str | None

    def write(self, result: DataFrame) -> None:
        """Publish the rows of a result."""
        rows = as_messages(result, self.subject)
        rows.write.format("weft").mode("append").options(**self._options()).save()

    def start(self, result: DataFrame, flow: Flow) -> StreamingQuery:
        """Publish the rows of a result as they come."""
        rows = as_messages(result, self.subject)
        return started(rows.writeStream.format("weft").options(**self._options()), flow)

    def _options(self) -> dict[str, str]:
        options = {"gateways": self.gateway, "service": self.service}
        return options if self.subject is None else {**options, "subject": self.subject}


def as_messages(result: DataFrame, subject: str | None) -> DataFrame:
    """The rows as the sink takes them, which sends them to one subject, or each to its own.

    Raises:
        BadSubject: it is none.
    """
    if subject is None:
        return result
    checked_subject(subject)
    fields = [
        col(f"`{name}`").alias(f"of_{name}" if name in _OF_A_MESSAGE else name)
        for name in result.columns
    ]
    return result.select(*fields)


def started(writer: DataStreamWriter, flow: Flow) -> StreamingQuery:
    """A streaming query that is under way; without a trigger it ends with what is there now."""
    writer = writer.outputMode(flow.output_mode)
    if flow.checkpoint:
        writer = writer.option("checkpointLocation", for_spark(flow.checkpoint))
    if flow.trigger_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(flow.trigger_s * 1000)} milliseconds").start()


def for_spark(path: str) -> str:
    """A place as Spark is told it: its current folder may be another than ours."""
    return path if "://" in path else str(Path(path).absolute())
