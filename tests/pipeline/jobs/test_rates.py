import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.desk import (
    BEGAN_S,
    S,
    Said,
    numbered,
    read_journals,
    rows_of,
    streamed,
    table_of,
    write_journals,
)

from weft.errors import BadOption
from weft.pipeline.jobs.rates import JOB, rates


def test_messages_and_bytes_are_counted_by_time_subject_and_publisher(spark: SparkSession) -> None:
    said = [
        Said(1, 0),
        Said(2, 9_999_999, payload=b"123456"),
        Said(3, 10 * S),
        Said(4, 0, subject="sensors.b"),
        Said(5, 0, publisher=4),
    ]
    assert rows_of(rates(table_of(spark, said))) == [
        (0, 10 * S, "weather", "sensors.a", 7, 3, 2, 10),
        (0, 10 * S, "weather", "sensors.a", 7, 4, 1, 4),
        (0, 10 * S, "weather", "sensors.b", 7, 3, 1, 4),
        (10 * S, 20 * S, "weather", "sensors.a", 7, 3, 1, 4),
    ]


def test_a_message_that_several_journals_have_counts_once(spark: SparkSession) -> None:
    said = [Said(n, n) for n in range(5)]
    # More of them than where they entered, of which the journal is not kept as long.
    heard = [Said(n, n).heard_at("paris") for n in range(8)]
    rows = rows_of(rates(table_of(spark, [*said, *heard]), window_s=60.0))
    assert [row[-2:] for row in rows] == [(5, 20)]


def test_figures_of_gateways_add_up(spark: SparkSession) -> None:
    said = [Said(n, n, origin=1) for n in range(5)]
    said += [Said(n, n, origin=2, node="paris") for n in range(3)]
    said += [each.heard_at("rome") for each in said]
    whole = rows_of(rates(table_of(spark, said), window_s=60.0))
    apart = [
        rows_of(rates(table_of(spark, [one for one in said if one.node == node]), window_s=60.0))
        for node in ("london", "paris", "rome")
    ]
    assert [row for rows in apart for row in rows] == whole
    assert [row[-2] for row in whole] == [5, 3]


def test_a_window_must_have_a_length(spark: SparkSession) -> None:
    with pytest.raises(BadOption, match=r"window_s is 0\.0; it must be more than 0"):
        rates(table_of(spark, []), window_s=0.0)


def traffic(seed: int) -> list[Said]:
    """An hour of a mesh: what enters in London, and the subject that Paris wants of it."""
    chance = random.Random(seed)
    said = []
    for sequence in range(400):
        each = Said(
            sequence,
            chance.randrange(3600 * S),
            chance.choice(["a", "b.c", "b.d"]),
            chance.randrange(3),
            payload=bytes(chance.randrange(50)),
        )
        said.append(each)
        said += [each.heard_at("paris")] if each.subject == "a" else []
    return numbered(sorted(said, key=lambda each: each.at_us))


def expected(said: list[Said], window_us: int) -> list[tuple[object, ...]]:
    messages: Counter[tuple[object, ...]] = Counter()
    sizes: Counter[tuple[object, ...]] = Counter()
    for each in said:
        if each.node == "london":
            start = (BEGAN_S * S + each.at_us) // window_us * window_us - BEGAN_S * S
            key = (start, start + window_us, "weather", each.subject, 7, each.publisher)
            messages[key] += 1
            sizes[key] += len(each.payload)
    return sorted(((*key, messages[key], sizes[key]) for key in messages), key=repr)


@pytest.mark.req("SPK-4")
@pytest.mark.parametrize("window_s", [7.0, 600.0])
def test_it_agrees_with_counting_by_hand(spark: SparkSession, window_s: float) -> None:
    said = traffic(1)
    assert rows_of(rates(table_of(spark, said), window_s=window_s)) == expected(
        said, int(window_s * S)
    )


@pytest.mark.req("SPK-4")
def test_a_stream_of_a_journal_gives_the_same(spark: SparkSession, tmp_path: Path) -> None:
    said = traffic(2)
    # What comes later says that everything before it is complete.
    write_journals(tmp_path, [*said, Said(400, 5000 * S, position=len(said))])
    values = JOB.values({"window_s": "600"})
    wanted = expected(said, 600 * S)
    batch = JOB.run(read_journals(spark, tmp_path, JOB, values, is_stream=False), values)
    assert [row for row in rows_of(batch) if row[0] < 4000 * S] == wanted
    stream = JOB.run(read_journals(spark, tmp_path, JOB, values, is_stream=True), values)
    assert streamed(stream, JOB.output_mode or "") == wanted
