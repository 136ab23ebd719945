"""What becomes of a result: shown, written or published; at once, or as it grows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.cli import output
from weft.cli.spark_rows import print_json, show, show_rows
from weft.cli.spark_work import JobFailed, said_in, working

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from weft.cli.spark_options import Asked
    from weft.pipeline.job import OutputMode
    from weft.pipeline.writing import Folder, Subject


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a job or a query, and what was asked for."""

    title: str
    rows: "DataFrame"
    asked: "Asked"
    # Every row has a subject of its own.
    has_subjects: bool = False

    def deliver(self) -> int:
        """Show, write or publish all of it; how many rows there were, if it was shown.

        Raises:
            JobFailed: Spark could not do it.
            BadOption: it cannot be written there.
        """
        to = self.asked.destination(has_subjects=self.has_subjects)
        with working(self.rows.sparkSession, self.title):
            if to is not None:
                to.write(self.rows)
            elif self.asked.is_json:
                return print_json(self.rows.toLocalIterator())
            else:
                return show(self.title, self.rows)
        output.news(f"the result is {_place(to)}")
        return 0

    def follow(self, output_mode: "OutputMode | None" = None) -> None:
        """Show, write or publish it as it grows, until it ends or ^C.

        Without an output mode, a row that changes is shown again; but what was written or
        published stays as it is.

        Raises:
            JobFailed: Spark could not go on.
            BadOption: it cannot be written there.
        """
        from weft.pipeline.writing import started  # noqa: PLC0415  # needs pyspark

        to = self.asked.destination(has_subjects=self.has_subjects)
        flow = self.asked.flow(output_mode or ("update" if to is None else "append"))
        with working(self.rows.sparkSession, self.title):
            if to is None:
                query = started(self.rows.writeStream.foreachBatch(self._show), flow)
            else:
                query = to.start(self.rows, flow)
            output.news(f"{self.title} goes on until ^C" if flow.trigger_s else "reading")
            _wait(query)
        if to is not None:
            output.news(f"the result is {_place(to)}")

    def _show(self, rows: "DataFrame", _number: int) -> None:
        found = rows.collect()
        if self.asked.is_json:
            print_json(found)
        elif found:
            show_rows(self.title, rows.dtypes, found)


def _wait(query: "StreamingQuery") -> None:
    from pyspark.errors import StreamingQueryException  # noqa: PLC0415  # slow to import

    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise JobFailed(said_in(str(error))) from error
    finally:
        query.stop()


def _place(to: "Folder | Subject") -> str:
    from weft.pipeline.writing import Folder  # noqa: PLC0415  # needs pyspark

    if isinstance(to, Folder):
        return f"in {to.path}"
    return f"published to {to.subject or 'its subjects'} of {to.service} at {to.gateway}"
