"""Who sends how much to whom: the traffic between gateways."""

from pyspark.sql import DataFrame, functions
from pyspark.sql.functions import col, count, length, lit

from weft.pipeline import entry
from weft.pipeline.job import Job


def matrix(messages: DataFrame) -> DataFrame:
    """Traffic from the gateway where messages entered to each gateway that has them.

    Columns: service, from_node, to_node, messages, bytes. What entered at a gateway itself is a
    row with its name twice. How the entry is found is told in weft.pipeline.entry.
    """
    entries = entry.entry_nodes(messages).withColumnRenamed("entry", "from_node")
    return (
        messages.join(entries, ["service", "origin"])
        .groupBy("service", "from_node", col("node").alias("to_node"))
        .agg(count(lit(1)).alias("messages"), functions.sum(length("payload")).alias("bytes"))
    )


JOB = Job(matrix, f"{entry.COLUMNS}, payload binary")
