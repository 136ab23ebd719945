"""Messages counted in stretches of time, each of them once: where it entered."""

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, window

from weft.errors import BadOption
from weft.pipeline.entry_gateway import entered


def interval(name: str, length_s: float) -> str:
    """A length of time as Spark writes it; `name` is the parameter that gave it.

    Raises:
        BadOption: it is not more than 0.
    """
    if not length_s > 0:
        raise BadOption(f"{name} is {length_s}; it must be more than 0")
    return f"{round(length_s * 1_000_000)} microseconds"


def in_time(messages: DataFrame, watermark_s: float) -> DataFrame:
    """What entered, and is not later than that."""
    return entered(messages).withWatermark("timestamp", interval("watermark_s", watermark_s))


def counted(
    messages: DataFrame, window_s: float, keys: list[str], figures: list[Column]
) -> DataFrame:
    """The figures for each stretch of time and each value of the keys.

    The columns are `start`, `end`, the keys, the figures.
    """
    stretch = window("timestamp", interval("window_s", window_s))
    found = messages.groupBy(stretch, *keys).agg(*figures)
    return found.select(
        col("window.start").alias("start"), col("window.end").alias("end"), *found.columns[1:]
    )
