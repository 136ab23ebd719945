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

from weft.pipeline.jobs.latency import JOB, latency

MS = 1000
# Delays of 1 … 100 ms, three clocks that are behind, and one message that does not say.
TIMED = numbered(
    [
        *[Said(n, 5 * S, sent_us=5 * S - n * MS) for n in range(1, 101)],
        *[Said(n, 6 * S, sent_us=7 * S) for n in range(101, 104)],
        Said(104, 6 * S),
        Said(105, 7 * S, subject="sensors.late", sent_us=8 * S),
    ]
)
FOUND = [
    (0, 10 * S, "weather", "sensors.a", 103, 3, 0.05, 0.09, 0.099, 0.1),
    (0, 10 * S, "weather", "sensors.late", 1, 1, None, None, None, None),
]


def test_percentiles_are_of_those_whose_clocks_can_be_right(spark: SparkSession) -> None:
    assert rows_of(latency(table_of(spark, TIMED))) == FOUND


def test_a_message_that_several_journals_have_counts_once(spark: SparkSession) -> None:
    heard = [each.heard_at("paris") for each in TIMED[:50]]
    assert rows_of(latency(table_of(spark, [*TIMED, *heard]))) == FOUND


def test_the_field_can_have_another_name(spark: SparkSession) -> None:
    table = table_of(spark, TIMED).withColumnRenamed("sent", "made at")
    assert rows_of(latency(table, field="made at")) == FOUND
    assert "`made at` timestamp" in JOB.columns_for(JOB.values({"field": "made at"}))


@pytest.mark.req("SPK-4")
def test_a_stream_of_a_journal_gives_the_same(spark: SparkSession, tmp_path: Path) -> None:
    write_journals(tmp_path, [*TIMED, Said(106, 60 * S, sent_us=60 * S, position=105)])
    values = JOB.parameters
    batch = JOB.run(read_journals(spark, tmp_path, JOB, values, is_stream=False), values)
    assert [row for row in rows_of(batch) if row[0] == 0] == FOUND
    stream = JOB.run(read_journals(spark, tmp_path, JOB, values, is_stream=True), values)
    assert streamed(stream, JOB.output_mode or "") == FOUND
