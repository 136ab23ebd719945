"""Sessions of publishers: from their first message to a pause."""

from pyspark.sql import DataFrame, functions
from pyspark.sql.functions import (
    array_sort,
    col,
    collect_set,
    count,
    length,
    lit,
    session_window,
)

from weft.pipeline.job import Job
from weft.pipeline.windows import in_time, interval


def sessions(messages: DataFrame, *, gap_s: float = 30.0, watermark_s: float = 10.0) -> DataFrame:
    """Periods in which a publisher was never silent for longer than a gap.

    Columns: service, origin, publisher, start, end (of the last message), messages, bytes,
    subjects. A message that several journals have counts once.
    """
    session = session_window("timestamp", interval("gap_s", gap_s)).alias("session")
    return (
        in_time(messages, watermark_s)
        .groupBy("service", "origin", "publisher", session)
        .agg(
            functions.max("timestamp").alias("end"),
            count(lit(1)).alias("messages"),
            functions.sum(length("payload")).alias("bytes"),
            array_sort(collect_set("subject")).alias("subjects"),
        )
        .select(
            *("service", "origin", "publisher", col("session.start").alias("start"), "end"),
            *("messages", "bytes", "subjects"),
        )
    )


JOB = Job(
    sessions,
    "timestamp timestamp, service string, origin bigint, publisher bigint, flags int,"
    " subject string, payload binary",
    output_mode="append",
)
