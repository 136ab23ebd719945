"""Where messages entered the mesh: the journals say it.

A journal of the mesh also has what came from other gateways, and marks it. So what has no mark has
entered at the node whose journal it is in, and that is once in all journals of a mesh. An origin is
one run of a gateway's worker: all its messages entered at the same node.
"""

from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.functions import col

from weft.broker.journal.batcher import ARRIVED


def entered(messages: DataFrame) -> DataFrame:
    """Those that entered at the node whose journal has them; needs the column `flags`."""
    return messages.where(has_entered())


def has_entered() -> Column:
    """Say if a message entered at the node whose journal has it."""
    return col("flags").bitwiseAND(ARRIVED) == 0


def entry_nodes(messages: DataFrame) -> DataFrame:
    """The columns `service`, `origin`, and `entry`: the node where its messages entered."""
    return entered(messages).groupBy("service", "origin").agg(functions.min("node").alias("entry"))
