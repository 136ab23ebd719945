"""Messages counted in stretches of time, each of them once, in whatever journals it is.

Every gateway that hears a message keeps it, so the journals of a mesh have it several times. A
figure is that of the gateway that has most of the messages which it is about: as a rule the one
where they entered.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, max_by, struct, window

from weft.errors import BadOption


def interval(name: str, length_s: float) -> str:
    """A length of time as Spark writes it; `name` is the parameter that gave it.

    Raises:
        BadOption: it is not more than 0.
    """
    if not length_s > 0:
        raise BadOption(f"{name} is {length_s}; it must be more than 0")
    return f"{round(length_s * 1_000_000)} microseconds"


def counted_once(
    messages: DataFrame, window_s: float, keys: list[str], figures: list[Column]
) -> DataFrame:
    """The figures for each stretch of time and each value of the keys.

    One of the figures is called `messages`. The columns are `start`, `end`, the keys, the figures.
    """
    stretch = window("timestamp", interval("window_s", window_s))
    by_node = messages.groupBy(stretch, *keys, "node").agg(*figures)
    names = [name for name in by_node.columns if name not in ("window", "node", *keys)]
    most = max_by(struct(*names), col("messages")).alias("most")
    fullest = by_node.groupBy("window", *keys).agg(most)
    return fullest.select(
        col("window.start").alias("start"), col("window.end").alias("end"), *keys, "most.*"
    )
