import random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit, spark_partition_id
from tests.pipeline.desk import Said, numbered, rows_of, table_of

from weft.errors import BadSubject
from weft.pipeline.jobs.replay import replay


@pytest.mark.req("SPK-4")
def test_messages_are_rows_to_publish_again_each_once(spark: SparkSession) -> None:
    said = [Said(1, payload=b"one"), Said(2, subject="b", payload=b"two")]
    heard = [said[0].heard_at("paris"), Said(3, subject="c", payload=b"three").heard_at("paris")]
    table = table_of(spark, [*said, *heard]).withColumn("reply", lit("inbox.1"))
    assert rows_of(replay(table, prefix="again.now")) == [
        ("again.now.b", "inbox.1", b"two", 8),
        ("again.now.c", "inbox.1", b"three", 8),
        ("again.now.sensors.a", "inbox.1", b"one", 8),
    ]
    assert rows_of(replay(table).select("subject")) == [("b",), ("c",), ("sensors.a",)]


def test_the_messages_of_a_publisher_stay_in_order(spark: SparkSession) -> None:
    said = [Said(n, publisher=n % 5, payload=b"%d %d" % (n % 5, n)) for n in range(500)]
    random.Random(1).shuffle(said)
    table = table_of(spark, numbered(said)).repartition(7)
    rows = replay(table).select("payload", spark_partition_id().alias("part")).collect()
    assert len(rows) == 500
    for publisher in range(5):
        own = [(row.part, *map(int, row.payload.split())) for row in rows]
        mine = [(part, number) for part, whose, number in own if whose == publisher]
        assert len({part for part, _ in mine}) == 1
        assert [number for _, number in mine] == sorted(number for _, number in mine)


@pytest.mark.parametrize("prefix", ["a..b", "a.>", ".a"])
def test_a_prefix_is_the_beginning_of_a_subject(spark: SparkSession, prefix: str) -> None:
    with pytest.raises(BadSubject):
        replay(table_of(spark, []), prefix=prefix)
