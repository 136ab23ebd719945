"""One job that runs unchanged on every master, and a program that runs it when it is told.

`python -m tests.spark.job MASTER SETTINGS` reads a line of JSON for each run and answers with one.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

import weft.spark
from weft.pipeline.jobs.rates import JOB, rates
from weft.pipeline.source import Source

# Long enough on a machine that is busy with other things.
WAIT_S = 180


@dataclass(frozen=True, slots=True)
class Data:
    """Where the job reads, and where it keeps its results and how far it came."""

    journal: str
    results: str


def job(spark: SparkSession, data: Data) -> dict[str, Any]:
    """Totals and rates of all there is, and what a stream copied so far, this time included."""
    weather = {"path": data.journal, "service": "weather"}
    readings = (
        spark.read.format("weft")
        .options(**weather)
        .schema("subject string, n bigint, half double")
        .load()
    )
    totals = readings.groupBy("subject").agg(sql.count("*"), sql.sum("n"), sql.sum("half"))
    source = Source(path=Path(data.journal), service="weather")
    rated = rates(source.for_job(spark, JOB, {}, is_stream=False))
    query = (
        spark.readStream.format("weft")
        .options(**weather, startingOffsets="earliest")
        .schema("node string, position bigint, n bigint")
        .load()
        .writeStream.format("parquet")
        .option("path", f"{data.results}/rows")
        .option("checkpointLocation", f"{data.results}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    if not query.awaitTermination(WAIT_S):
        raise TimeoutError(f"the stream did not end in {WAIT_S} s")
    copied = spark.read.parquet(f"{data.results}/rows")
    return {
        "totals": [list(row) for row in totals.orderBy("subject").collect()],
        "rates": [
            list(row)
            for row in rated.selectExpr("unix_micros(start)", "subject", "messages")
            .orderBy("subject")
            .collect()
        ],
        "copied": [list(row) for row in copied.orderBy("node", "position").collect()],
    }


def answer(spark: SparkSession, data: Data) -> dict[str, Any]:
    """What the job says, and what kind of session it said it on."""
    return {
        **job(spark, data),
        "session": type(spark).__module__,
        "zone": spark.conf.get("spark.sql.session.timeZone"),
    }


def main(master: str, settings: str) -> None:
    """Run the job for every line, on one session."""
    spark = weft.spark.session("tests", master=master, settings=json.loads(settings))
    for line in sys.stdin:
        print("ANSWER", json.dumps(answer(spark, Data(**json.loads(line)))), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
