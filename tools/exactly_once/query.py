"""The driver that is killed: one streaming query from journals to a gateway.

`python -m tools.exactly_once.query JSON`, with the fields of Plan.
"""

import json
import sys
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, window
from pyspark.sql.functions import sum as sum_

import weft.spark

# The event time of the messages goes so much faster than the clock that windows end.
WINDOW = "10 minutes"
# More than any journal can be behind another one.
LATENESS = "12 hours"

_SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    query: str
    # `path` or `gateways` of the source, with its value.
    source: tuple[str, str]
    sink: str
    checkpoint: str
    # Read what is there, and end.
    is_last: bool = False

    def to_json(self) -> str:
        """As an argument of the command line."""
        return json.dumps(asdict(self))


def copied(messages: DataFrame) -> DataFrame:
    """Each message as a row that says where it was: without state."""
    return messages.selectExpr("'out.copy' AS subject", "node", "position", "n")


def windows(messages: DataFrame) -> DataFrame:
    """How many messages there were in each window, by key: with state."""
    return (
        messages.withWatermark("at", LATENESS)
        .selectExpr("at", "n", "n % 10 AS key")
        .groupBy(window("at", WINDOW), "key")
        .agg(count("*").alias("rows"), sum_("n").alias("total"))
        .selectExpr("'out.windows' AS subject", "window.start AS start", "key", "rows", "total")
    )


def run(spark: SparkSession, plan: Plan) -> None:
    """Run the query until it is killed, or to its end."""
    name, value = plan.source
    messages = (
        spark.readStream.format("weft")
        .option(name, value)
        .options(subscribe="in.>", startingOffsets="earliest", maxOffsetsPerTrigger="25000")
        .schema("node string, position bigint, n bigint, at timestamp")
        .load()
    )
    rows = {"copy": copied, "windows": windows}[plan.query](messages)
    writing = (
        rows.writeStream.format("weft")
        .outputMode("append")
        .options(gateways=plan.sink, checkpointLocation=plan.checkpoint)
    )
    if plan.is_last:
        writing.trigger(availableNow=True).start().awaitTermination()
    else:
        writing.trigger(processingTime="100 milliseconds").start().awaitTermination()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    run(
        weft.spark.session("exactly-once", master="local[2]", settings=_SETTINGS),
        Plan(**{**given, "source": tuple(given["source"])}),
    )
