"""Sinks of a result: a folder of Parquet files, or a subject, one message per row."""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from weft.errors import BadOption
from weft.pipeline.job import OutputMode


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """Settings of a stream: trigger interval, output mode and checkpoint folder."""

    trigger_s: float | None
    output_mode: OutputMode
    checkpoint: str


@dataclass(frozen=True, slots=True)
class Folder:
    """Folder of Parquet files, local or by URL."""

    path: str

    def write(self, result: DataFrame) -> None:
        """Write a whole result.

        Raises:
            BadOption: The folder is not empty.
        """
        self.check_new()
        result.write.mode("append").parquet(for_spark(self.path))

    def check_new(self) -> None:
        """Check that the folder is empty or does not exist.

        Raises:
            BadOption: It is not empty.
        """
        here = Path(self.path)
        if here.is_dir() and any(here.iterdir()):
            raise BadOption(f"{self.path} is not empty: give a new folder")

    def start(self, result: DataFrame, flow: StreamPlan) -> StreamingQuery:
        """Start writing a streaming result."""
        writer = result.writeStream.format("parquet").option("path", for_spark(self.path))
        return started(writer, flow)


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject at a gateway; None if each row has its own."""

    gateway: str
    service: str
    subject: str | None
    tls_ca: str | None = None
    key_file: str | None = None

    def write(self, result: DataFrame) -> None:
        """Publish the rows of a result."""
        result.write.format("weft").mode("append").options(**self._options()).save()

    def start(self, result: DataFrame, flow: StreamPlan) -> StreamingQuery:
        """Start publishing the rows of a streaming result."""
        return started(result.writeStream.format("weft").options(**self._options()), flow)

    def _options(self) -> dict[str, str]:
        options = {
            "gateways": self.gateway,
            "service": self.service,
            "subject": self.subject,
            "tlsCa": self.tls_ca,
            "keyFile": self.key_file,
        }
        return {name: value for name, value in options.items() if value is not None}


def started(writer: DataStreamWriter, flow: StreamPlan) -> StreamingQuery:
    """Start a streaming query; without a trigger it ends after the current data."""
    writer = writer.outputMode(flow.output_mode)
    if flow.checkpoint:
        writer = writer.option("checkpointLocation", for_spark(flow.checkpoint))
    if flow.trigger_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(flow.trigger_s * 1000)} milliseconds").start()


def for_spark(path: str) -> str:
    """Return a path for Spark, absolute: its working folder may differ from ours."""
    return path if "://" in path else str(Path(path).absolute())
