"""Rates of publishing: messages and bytes, by time, subject and publisher."""

from pyspark.sql import DataFrame, functions
from pyspark.sql.functions import count, length, lit

from weft.pipeline.job import Job
from weft.pipeline.windows import counted, in_time


def rates(messages: DataFrame, *, window_s: float = 10.0, watermark_s: float = 10.0) -> DataFrame:
    """Messages and bytes in every time window, by subject and publisher.

    Columns: start, end, service, subject, origin, publisher, messages, bytes. A publisher is a
    connection of the gateway `origin`.
    """
    return counted(
        in_time(messages, watermark_s),
        window_s,
        ["service", "subject", "origin", "publisher"],
        [count(lit(1)).alias("messages"), functions.sum(length("payload")).alias("bytes")],
    )


JOB = Job(
    rates,
    "timestamp timestamp, service string, subject string, origin bigint, publisher bigint,"
    " flags int, payload binary",
    output_mode="append",
)
