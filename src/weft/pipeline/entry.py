"""At which gateway the messages of an origin entered the mesh: found in the journals.

A message does not say it: its origin is a number that a gateway draws when it starts. Three things
tell, in this order.

1. The entry gateway has every message of the origin that is kept at all. Others have what somebody
   there wanted, so the one with most of them is the entry.
2. Among equals, whoever has the earliest.
3. Where all have all, the way between the gateways tells. At its entry a message is written down at
   once, elsewhere after its way there. So what another origin said just before it is older at the
   entry than at any other gateway, by the time of the way; how wrong the clocks are does not
   matter, as the same two clocks are compared everywhere. A gateway where nothing of others comes
   before it hears nobody: those messages are its own.

If only one gateway ever publishes and all have everything, nothing tells: then the first by name is
taken. The journals must be kept equally long.
"""

from pyspark.sql import DataFrame, Window, functions
from pyspark.sql.functions import (
    avg,
    coalesce,
    col,
    count,
    lag,
    lit,
    struct,
    unix_micros,
    when,
)

# What is needed of messages.
COLUMNS = (
    "service string, node string, origin bigint, sequence bigint, position bigint,"
    " timestamp timestamp"
)


def entry_nodes(messages: DataFrame) -> DataFrame:
    """The columns `service`, `origin`, and `entry`: the gateway where its messages entered."""
    evidence = (
        _first_copies(messages)
        # Two clocks at a time, and then all that were compared alike.
        .groupBy("service", "origin", "node", "other")
        .agg(
            count(lit(1)).alias("known"),
            functions.min("sequence").alias("first"),
            avg("younger_us").alias("younger_us"),
        )
        .groupBy("service", "origin", "node")
        .agg(
            functions.sum("known").alias("known"),
            functions.min("first").alias("first"),
            coalesce(avg("younger_us"), lit(float("-inf"))).alias("younger_us"),
        )
    )
    # The least in all that tells, and then in its name.
    fewest = (-col("known")).alias("fewest")
    best = functions.min(struct(fewest, "first", "younger_us", "node"))
    return evidence.groupBy("service", "origin").agg(best["node"].alias("entry"))


def _first_copies(messages: DataFrame) -> DataFrame:
    """Every message where a node first has it, and what another origin said just before.

    `other` is that origin, and `younger_us` how much younger than the message that was.
    """
    in_order = Window.partitionBy("service", "node").orderBy("position")
    before = lag(struct("origin", "timestamp")).over(in_order)
    is_other = before["origin"] != col("origin")
    younger_us = unix_micros(before["timestamp"]) - unix_micros(col("timestamp"))
    heard = messages.select(
        *("service", "node", "origin", "sequence", "position"),
        when(is_other, before["origin"]).alias("other"),
        when(is_other, younger_us).alias("younger_us"),
    )
    return (
        heard.groupBy("service", "origin", "node", "sequence")
        .agg(functions.min(struct("position", "other", "younger_us")).alias("copy"))
        .select("service", "origin", "node", "sequence", "copy.other", "copy.younger_us")
    )
