"""Delivery of a result: printed, written or published; at once, or as a stream."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.cli.output import streams
from weft.cli.output.spark_rows import first_of, print_json, show, show_rows
from weft.cli.spark.job_run import perform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from weft.cli.options.spark import SparkOptions
    from weft.pipeline.job import OutputMode
    from weft.pipeline.sink import Folder, Subject


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a job or a query, and the options of the command."""

    title: str
    rows: "DataFrame"
    asked: "SparkOptions"
    # Every row has its own subject.
    has_subjects: bool = False

    def deliver(self) -> int:
        """Print, write or publish the whole result; return the number of printed rows.

        Raises:
            JobFailed: Spark failed to compute it.
            BadOption: It cannot be written there.
        """
        to = self.asked.destination(has_subjects=self.has_subjects)
        rows, spark = self.rows, self.rows.sparkSession
        if to is not None:
            perform(spark, self.title, lambda: to.write(rows))
            streams.news(f"the result is {_place(to)}")
            return 0
        if self.asked.is_json:
            # The printed rows show the progress already.
            is_quiet = not streams.is_terminal(sys.stdout)
            return perform(
                spark, self.title, lambda: print_json(rows.toLocalIterator()), is_shown=is_quiet
            )
        return show(self.title, rows.dtypes, perform(spark, self.title, lambda: first_of(rows)))

    def follow(self, output_mode: "OutputMode | None" = None) -> None:
        """Print, write or publish a streaming result, until it ends or ^C.

        Without an output mode a changed row is printed again; written or published rows are not
        updated.

        Raises:
            JobFailed: Spark failed to continue.
            BadOption: It cannot be written there.
        """
        from weft.pipeline.sink import started  # noqa: PLC0415  # needs pyspark

        to = self.asked.destination(has_subjects=self.has_subjects)
        flow = self.asked.flow(output_mode or ("update" if to is None else "append"))
        spark = self.rows.sparkSession

        def start() -> "StreamingQuery":
            if to is None:
                return started(self.rows.writeStream.foreachBatch(self._show), flow)
            return to.start(self.rows, flow)

        query = perform(spark, self.title, start)
        streams.news(f"{self.title} goes on until ^C" if flow.trigger_s else "reading")
        perform(spark, self.title, query.awaitTermination, cancel=query.stop, is_shown=False)
        if to is not None:
            streams.news(f"the result is {_place(to)}")

    def _show(self, rows: "DataFrame", _number: int) -> None:
        found = rows.collect()
        if self.asked.is_json:
            print_json(found)
        elif found:
            show_rows(self.title, rows.dtypes, found)


def _place(to: "Folder | Subject") -> str:
    from weft.pipeline.sink import Folder  # noqa: PLC0415  # needs pyspark

    if isinstance(to, Folder):
        return f"in {to.path}"
    return f"published to {to.subject or 'its subjects'} of {to.service} at {to.gateway}"
