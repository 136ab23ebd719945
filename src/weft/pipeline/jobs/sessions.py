"""When publishers were at work: from their first message to a pause."""

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

from weft.pipeline.counting import interval
from weft.pipeline.job import Job


def sessions(messages: DataFrame, *, gap_s: float = 30.0, watermark_s: float = 10.0) -> DataFrame:
    """Stretches of time in which a publisher was never silent for longer than a gap.

    Columns: service, origin, publisher, start, end (of the last message), messages, bytes,
    subjects. A message that several journals have counts once.
    """
    timed = messages.withWatermark("timestamp", interval("watermark_s", watermark_s)).select(
        *("timestamp", "service", "origin", "publisher", "sequence", "subject"),
        length("payload").alias("size"),
    )
    session = session_window("timestamp", interval("gap_s", gap_s)).alias("session")
    return (
        _once(timed, ["service", "origin", "sequence"])
        .groupBy("service", "origin", "publisher", session)
        .agg(
            functions.max("timestamp").alias("end"),
            count(lit(1)).alias("messages"),
            functions.sum("size").alias("bytes"),
            array_sort(collect_set("subject")).alias("subjects"),
        )
        .select(
            *("service", "origin", "publisher", col("session.start").alias("start"), "end"),
            *("messages", "bytes", "subjects"),
        )
    )


def _once(messages: DataFrame, keys: list[str]) -> DataFrame:
    if messages.isStreaming:
        return messages.dropDuplicatesWithinWatermark(keys)
    return messages.dropDuplicates(keys)


JOB = Job(
    sessions,
    "timestamp timestamp, service string, origin bigint, publisher bigint, sequence bigint,"
    " subject string, payload binary",
    output_mode="append",
)
