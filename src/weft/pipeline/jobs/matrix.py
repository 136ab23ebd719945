"""Traffic matrix: messages and bytes between gateways."""

from pyspark.sql import DataFrame, functions
from pyspark.sql.functions import coalesce, col, count, length, lit, when

from weft.pipeline.entry_gateway import entry_nodes, has_entered
from weft.pipeline.job import Job


def matrix(messages: DataFrame) -> DataFrame:
    """Traffic from the gateway where messages entered to each gateway that has them.

    Columns: service, from_node, to_node, messages, bytes. Messages that entered at a gateway itself
    are a row with its name twice. `from_node` is "?" if the journal of the entry is missing.
    """
    from_node = coalesce(when(has_entered(), col("node")), col("entry"), lit("?"))
    return (
        messages.join(entry_nodes(messages), ["service", "origin"], "left")
        .groupBy("service", from_node.alias("from_node"), col("node").alias("to_node"))
        .agg(count(lit(1)).alias("messages"), functions.sum(length("payload")).alias("bytes"))
    )


JOB = Job(
    matrix,
    "timestamp timestamp, service string, node string, origin bigint, flags int, payload binary",
)
