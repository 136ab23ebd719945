"""Latency from a timestamp that the publisher set to the message's entry at a gateway."""

from pyspark.sql import DataFrame, functions
from pyspark.sql.functions import (
    col,
    count,
    count_if,
    lit,
    percentile_approx,
    unix_micros,
    when,
)

from weft.pipeline.job import Job
from weft.pipeline.windows import counted, in_time

_PERCENTILES = (50, 90, 99)


def latency(
    messages: DataFrame, *, field: str = "sent", window_s: float = 10.0, watermark_s: float = 10.0
) -> DataFrame:
    """Percentiles of the time from a timestamp field of the message to its entry, by subject.

    Columns: start, end, service, subject, messages, skewed, p50_s, p90_s, p99_s, max_s. Messages
    without the field are left out. Messages with an entry before their timestamp show that clocks
    differ: they count as skewed, and in no percentile.
    """
    delay_s = (unix_micros(col("timestamp")) - unix_micros(col(f"`{field}`"))) / 1e6
    timed = (
        in_time(messages, watermark_s)
        .where(col(f"`{field}`").isNotNull())
        .withColumn("delay_s", delay_s)
    )
    sound_s = when(col("delay_s") >= 0, col("delay_s"))
    return counted(
        timed,
        window_s,
        ["service", "subject"],
        [
            count(lit(1)).alias("messages"),
            count_if(col("delay_s") < 0).alias("skewed"),
            *(percentile_approx(sound_s, each / 100).alias(f"p{each}_s") for each in _PERCENTILES),
            functions.max(sound_s).alias("max_s"),
        ],
    )


JOB = Job(
    latency,
    "timestamp timestamp, service string, subject string, flags int, `{field}` timestamp",
    output_mode="append",
)
