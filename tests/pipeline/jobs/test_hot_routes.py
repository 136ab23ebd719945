from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.desk import (
    S,
    Said,
    numbered,
    read_journals,
    rows_of,
    streamed,
    table_of,
    write_journals,
)

from weft.pipeline.jobs.hot_routes import JOB, hot_routes

# Ten small messages in the first second, one large one in the second.
BUSY = numbered(
    [
        *[Said(n, n * S // 10) for n in range(10)],
        Said(10, S, subject="sensors.b", payload=bytes(5000)),
        Said(11, S, subject="sensors.c"),
    ]
)
BY_MESSAGES = (0, S, "weather", "london", "sensors.a", 7, 3, 10.0, 40.0, 10.0)
BY_BYTES = (S, 2 * S, "weather", "london", "sensors.b", 7, 3, 1.0, 5000.0, 10.0)


@pytest.mark.req("SPK-4")
@pytest.mark.parametrize(
    ("messages_s", "bytes_s", "found"),
    [
        (10.0, 5000.0, [BY_MESSAGES, BY_BYTES]),
        (10.0, 5001.0, [BY_MESSAGES]),
        (11.0, 5000.0, [BY_BYTES]),
        (11.0, 5001.0, []),
    ],
)
def test_routes_over_either_threshold_are_hot(
    spark: SparkSession, messages_s: float, bytes_s: float, found: list[object]
) -> None:
    table = table_of(spark, BUSY)
    assert rows_of(hot_routes(table, messages_s=messages_s, bytes_s=bytes_s)) == found


def test_a_route_is_judged_where_it_enters(spark: SparkSession) -> None:
    there = [each.heard_at("paris") for each in BUSY]
    table = table_of(spark, [*BUSY, *there])
    rows = rows_of(hot_routes(table, messages_s=10.0, ttl_s=3.0))
    assert [(row[3], row[-1]) for row in rows] == [("london", 3.0)]


def test_a_rate_is_that_of_a_second_however_long_the_window(spark: SparkSession) -> None:
    rows = rows_of(hot_routes(table_of(spark, BUSY), messages_s=5.0, window_s=2.0))
    assert [row[7] for row in rows] == [5.0]


@pytest.mark.req("SPK-4")
def test_a_stream_of_a_journal_gives_the_same(spark: SparkSession, tmp_path: Path) -> None:
    write_journals(tmp_path, [*BUSY, Said(12, 60 * S, position=12)])
    values = JOB.values({"messages_s": "10", "bytes_s": "5000"})
    batch = JOB.run(read_journals(spark, tmp_path, JOB, values, is_stream=False), values)
    assert rows_of(batch) == [BY_MESSAGES, BY_BYTES]
    stream = JOB.run(read_journals(spark, tmp_path, JOB, values, is_stream=True), values)
    assert streamed(stream, JOB.output_mode or "") == [BY_MESSAGES, BY_BYTES]
