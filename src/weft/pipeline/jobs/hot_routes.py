"""Which routes are worth a direct lane: they are hot.

The result is made to be published to `_WEFT.PIPELINE.hot_routes`, where gateways listen.
"""

from pyspark.sql import DataFrame, functions
from pyspark.sql.functions import col, count, length, lit, window

from weft.pipeline.counting import interval
from weft.pipeline.job import Job


def hot_routes(  # noqa: PLR0913  # each is a parameter of the job
    messages: DataFrame,
    *,
    messages_s: float = 1000.0,
    bytes_s: float = 1_000_000.0,
    window_s: float = 1.0,
    watermark_s: float = 2.0,
    ttl_s: float = 10.0,
) -> DataFrame:
    """Routes over a threshold of messages or bytes a second, in a short stretch of time.

    Columns: start, end, service, node, subject, origin, publisher, messages_s, bytes_s, and ttl_s:
    for how long it is to be believed. A route is what one publisher sends to one subject, as the
    gateway `node` sees it.
    """
    stretch = window("timestamp", interval("window_s", window_s))
    route = ("service", "node", "subject", "origin", "publisher")
    rates = (
        messages.withWatermark("timestamp", interval("watermark_s", watermark_s))
        .groupBy(stretch, *route)
        .agg(
            (count(lit(1)) / window_s).alias("messages_s"),
            (functions.sum(length("payload")) / window_s).alias("bytes_s"),
        )
    )
    return rates.where((col("messages_s") >= messages_s) | (col("bytes_s") >= bytes_s)).select(
        col("window.start").alias("start"),
        col("window.end").alias("end"),
        *route,
        "messages_s",
        "bytes_s",
        lit(ttl_s).alias("ttl_s"),
    )


JOB = Job(
    hot_routes,
    "timestamp timestamp, service string, node string, subject string, origin bigint,"
    " publisher bigint, payload binary",
    output_mode="append",
)
