"""Where a result goes: to a folder of Parquet, or to a subject as messages, a row each."""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from weft.errors import BadOption
from weft.pipeline.job import OutputMode


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
        self.check_new()
        result.write.mode("append").parquet(for_spark(self.path))

    def check_new(self) -> None:
        """See that nothing is there yet.

        Raises:
            BadOption: something is.
        """
        here = Path(self.path)
        if here.is_dir() and any(here.iterdir()):
            raise BadOption(f"{self.path} is not empty: give a new folder")

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
    tls_ca: str | None = None
    key_file: str | None = None

    def write(self, result: DataFrame) -> None:
        """Publish the rows of a result."""
        result.write.format("weft").mode("append").options(**self._options()).save()

    def start(self, result: DataFrame, flow: Flow) -> StreamingQuery:
        """Publish the rows of a result as they come."""
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
