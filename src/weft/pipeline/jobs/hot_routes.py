"""Hot routes: candidates for a direct lane.

Publish the result to `_WEFT.PIPELINE.hot_routes`, which gateways subscribe to.
"""

from pyspark.sql import DataFrame, functions
from pyspark.sql.functions import col, count, length, lit

from weft.pipeline.job import Job
from weft.pipeline.windows import counted, in_time


def hot_routes(  # noqa: PLR0913  # each is a parameter of the job
    messages: DataFrame,
    *,
    messages_s: float = 1000.0,
    bytes_s: float = 1_000_000.0,
    window_s: float = 1.0,
    watermark_s: float = 2.0,
    ttl_s: float = 10.0,
) -> DataFrame:
    """Routes over a threshold of messages or bytes a second, in a short time window.

    Columns: start, end, service, node, subject, origin, publisher, messages_s, bytes_s, and ttl_s,
    the lifetime of the row. A route is the traffic of one publisher to one subject; it enters at
    the gateway `node`.
    """
    rates = counted(
        in_time(messages, watermark_s),
        window_s,
        ["service", "node", "subject", "origin", "publisher"],
        [
            (count(lit(1)) / window_s).alias("messages_s"),
            (functions.sum(length("payload")) / window_s).alias("bytes_s"),
        ],
    )
    is_hot = (col("messages_s") >= messages_s) | (col("bytes_s") >= bytes_s)
    return rates.where(is_hot).withColumn("ttl_s", lit(ttl_s))


JOB = Job(
    hot_routes,
    "timestamp timestamp, service string, node string, subject string, origin bigint,"
    " publisher bigint, flags int, payload binary",
    output_mode="append",
)
