"""Gateways where messages entered the mesh, as recorded in the journals.

A journal with scope mesh also has messages from other gateways, and flags them. A message without
the flag entered at the node of the journal, which holds for one journal of a mesh. An origin is one
run of a gateway's worker: all its messages entered at the same node.
"""

from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.functions import col

from weft.broker.journal.batcher import ARRIVED


def entered(messages: DataFrame) -> DataFrame:
    """Return the messages that entered at the node of their journal; needs the column `flags`."""
    return messages.where(has_entered())


def has_entered() -> Column:
    """Return the condition that a message entered at the node of its journal."""
    return col("flags").bitwiseAND(ARRIVED) == 0


def entry_nodes(messages: DataFrame) -> DataFrame:
    """Return the columns `service`, `origin`, and `entry`: the node where its messages entered."""
    return entered(messages).groupBy("service", "origin").agg(functions.min("node").alias("entry"))
