"""Source of a job: messages of one service, from a folder or from gateways, in a time range."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit

from weft.errors import BadOption
from weft.journal.segment.file_names import root_of, segments_of
from weft.pipeline.job import Job, Value
from weft.pipeline.jobs.compact import FOLDERS
from weft.spark.columns import STANDARD


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Location and selection of messages; times have a time zone."""

    path: Path | None = None
    gateways: str | None = None
    tls_ca: str | None = None
    key_file: str | None = None
    service: str = "default"
    subject: str = ">"
    since: datetime | None = None
    until: datetime | None = None

    def table(self, spark: SparkSession, columns: str = STANDARD) -> DataFrame:
        """Return the current messages."""
        return self._within(self._reader(spark.read).schema(columns).load())

    def stream(self, spark: SparkSession, columns: str = STANDARD) -> DataFrame:
        """Return a stream of the messages since the start, and of new ones."""
        return self._within(self._reader(spark.readStream).schema(columns).load())

    def for_job(
        self, spark: SparkSession, job: Job, values: dict[str, Value], *, is_stream: bool
    ) -> DataFrame:
        """Return the table that a job needs with these values of its parameters.

        Raises:
            BadOption: Not available from this source, or not as a stream.
        """
        self.check(job, values, is_stream=is_stream)
        if job.reads_folders:
            return self._days(spark)
        columns = job.columns_for(values)
        if job.needs_all:
            return self._all(spark, columns)
        return self.stream(spark, columns) if is_stream else self.table(spark, columns)

    def check(self, job: Job, values: dict[str, Value], *, is_stream: bool) -> None:
        """Check that a job can run on this source, as far as that is known without Spark.

        Raises:
            BadOption: Not available from this source, or not as a stream.
        """
        if is_stream and job.output_mode is None:
            raise BadOption(f"{job.name} cannot stream: it needs the whole table")
        if job.reads_folders:
            self._folder()
            return
        job.columns_for(values)
        if job.needs_all and (self.subject != ">" or self.until is not None):
            raise BadOption(
                f"{job.name} judges whole journals: it does not support --subject and --until"
            )

    def _all(self, spark: SparkSession, columns: str) -> DataFrame:
        """Return whole journals including missing ranges, which the job reports."""
        reader = self._reader(spark.read).option("failOnDataLoss", "false")
        table: DataFrame = reader.schema(columns).load()
        return table

    def _reader(self, reader: Any) -> Any:
        options = {"service": self.service, "subscribe": self.subject}
        if self.path is not None:
            options["path"] = str(self.path.absolute())
        if self.gateways is not None:
            options["gateways"] = self.gateways
        if self.tls_ca is not None:
            options["tlsCa"] = self.tls_ca
        if self.key_file is not None:
            options["keyFile"] = self.key_file
        if self.since is not None:
            options["startingTimestamp"] = self.since.astimezone(UTC).isoformat()
        return reader.format("weft").options(**options)

    def _within(self, messages: DataFrame) -> DataFrame:
        # Reading starts at a position, and later messages may have an earlier time of a slow clock.
        if self.since is not None:
            messages = messages.where(col("timestamp") >= lit(self.since))
        if self.until is not None:
            messages = messages.where(col("timestamp") < lit(self.until))
        return messages

    def _days(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(sealed_days(root_of(self._folder()), self.service), FOLDERS)

    def _folder(self) -> Path:
        if self.path is None:
            raise BadOption("this job merges files: give their folder with --path")
        return self.path


def sealed_days(root: Path, service: str) -> list[tuple[str, str, str, str]]:
    """Return root, service, day and node of every folder with sealed segments."""
    folders = {each.path.parent for each in segments_of(root, service) if each.state == "sealed"}
    return [
        (
            str(root.absolute()),
            service,
            folder.parent.name.removeprefix("date="),
            folder.name.removeprefix("node="),
        )
        for folder in sorted(folders)
    ]
