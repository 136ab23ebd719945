"""How long it takes from a publisher through the journal and Spark back to a subscriber.

`python -m benchmarks.pipeline.latency`: a streaming query with a trigger of 100 ms copies what is
published, and a subscriber compares the time on each copy with its own clock.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import weft
import weft.spark
from benchmarks.pipeline.stage import DISK
from benchmarks.running import Gateway

TRIGGER_MS = 100
SECONDS = 60.0
PER_S = 50.0
# The first batches of a query take longer: classes are loaded and compiled.
WARM_S = 20.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and show."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline.latency")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long ({SECONDS})")
    options = parser.parse_args(arguments)
    DISK.mkdir(exist_ok=True)
    spark = weft.spark.session("latency", settings={"spark.log.level": "OFF"})
    with tempfile.TemporaryDirectory(prefix="latency-", dir=DISK) as folder:
        data = str(Path(folder).absolute())
        journal = {"patterns": ["in.>", "out.>"]}
        with Gateway(data=data, journal=journal) as gateway:
            address = f"127.0.0.1:{gateway.port}"
            query = _copying(spark, data, address)
            try:
                delays = asyncio.run(_measured(address, options.seconds))
            finally:
                query.stop()
    spark.stop()
    _show(delays)
    return 0


def _copying(spark: SparkSession, data: str, address: str) -> StreamingQuery:
    source = (
        spark.readStream.format("weft")
        .options(path=data, subscribe="in.>")
        .schema("sent bigint")
        .load()
        .selectExpr("'out.copy' AS subject", "sent")
    )
    return (
        source.writeStream.format("weft")
        .options(gateways=address, checkpointLocation=f"{data}/checkpoint")
        .trigger(processingTime=f"{TRIGGER_MS} milliseconds")
        .start()
    )


async def _measured(address: str, seconds: float) -> list[float]:
    """The delays, in seconds, after the first have warmed everything up."""
    delays: list[float] = []
    async with weft.connect(address) as connection:
        copies = connection.subscribe("out.copy")
        publishing = asyncio.create_task(_publish(connection))
        # The clock starts when the first copy has come: until then Spark starts.
        await anext(copies)
        began = time.monotonic()
        async for copy in copies:
            elapsed = time.monotonic() - began
            if elapsed > WARM_S:
                delays.append((time.time_ns() - copy["sent"]) / 1e9)
            if elapsed > WARM_S + seconds:
                break
        publishing.cancel()
    return sorted(delays)


async def _publish(connection: weft.AsyncConnection) -> None:
    while True:
        await connection.publish("in.x", {"sent": time.time_ns()})
        await asyncio.sleep(1 / PER_S)


def _show(delays: list[float]) -> None:
    print(f"{len(delays):,} messages at {PER_S:.0f}/s, trigger {TRIGGER_MS} ms")
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
        print(f"  {name}  {delays[min(int(len(delays) * share), len(delays) - 1)]:.3f} s")


if __name__ == "__main__":
    sys.exit(main())
