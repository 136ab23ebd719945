"""Counts of messages in time windows, each message once: at the gateway where it entered."""

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, window

from weft.errors import BadOption
from weft.pipeline.entry_gateway import entered


def interval(name: str, length_s: float) -> str:
    """Return a duration in Spark's syntax; `name` is the parameter that gave it.

    Raises:
        BadOption: It is not more than 0.
    """
    if not length_s > 0:
        raise BadOption(f"{name} is {length_s}; it must be more than 0")
    return f"{round(length_s * 1_000_000)} microseconds"


def in_time(messages: DataFrame, watermark_s: float) -> DataFrame:
    """Return the messages at the gateway where they entered, with a watermark for late ones."""
    return entered(messages).withWatermark("timestamp", interval("watermark_s", watermark_s))


def counted(
    messages: DataFrame, window_s: float, keys: list[str], figures: list[Column]
) -> DataFrame:
    """Return the figures for each window and each value of the keys.

    The columns are `start`, `end`, the keys, the figures.
    """
    stretch = window("timestamp", interval("window_s", window_s))
    found = messages.groupBy(stretch, *keys).agg(*figures)
    return found.select(
        col("window.start").alias("start"), col("window.end").alias("end"), *found.columns[1:]
    )
