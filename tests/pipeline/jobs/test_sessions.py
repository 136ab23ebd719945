import random
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

from weft.pipeline.jobs.sessions import JOB, sessions


def test_a_pause_as_long_as_the_gap_ends_a_session(spark: SparkSession) -> None:
    said = [
        Said(1, 0),
        Said(2, 29_999_999, subject="sensors.b"),
        Said(3, 60 * S, payload=b"123456"),
        Said(4, 0, publisher=4),
    ]
    assert rows_of(sessions(table_of(spark, said))) == [
        ("weather", 7, 3, 0, 29_999_999, 2, 8, ["sensors.a", "sensors.b"]),
        ("weather", 7, 3, 60 * S, 60 * S, 1, 6, ["sensors.a"]),
        ("weather", 7, 4, 0, 0, 1, 4, ["sensors.a"]),
    ]


def traffic(seed: int) -> list[Said]:
    chance = random.Random(seed)
    said = [
        Said(n, chance.randrange(3600 * S), chance.choice("abc"), chance.randrange(4))
        for n in range(300)
    ]
    heard = [each.heard_at("paris") for each in said if chance.random() < 0.4]
    return numbered(sorted([*said, *heard], key=lambda each: each.at_us))


def expected(said: list[Said], gap_us: int) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for publisher in {each.publisher for each in said}:
        own = [each for each in said if each.publisher == publisher and each.node == "london"]
        session: list[Said] = []
        for each in [*own, None]:
            if session and (each is None or each.at_us - session[-1].at_us >= gap_us):
                subjects = sorted({one.subject for one in session})
                size = sum(len(one.payload) for one in session)
                times = (session[0].at_us, session[-1].at_us)
                found.append(("weather", 7, publisher, *times, len(session), size, subjects))
                session = []
            if each is not None:
                session.append(each)
    return sorted(found, key=repr)


@pytest.mark.req("SPK-4")
@pytest.mark.parametrize("gap_s", [30.0, 90.0])
def test_it_agrees_with_counting_by_hand(spark: SparkSession, gap_s: float) -> None:
    said = traffic(1)
    wanted = expected(said, int(gap_s * S))
    assert rows_of(sessions(table_of(spark, said), gap_s=gap_s)) == wanted


@pytest.mark.req("SPK-4")
def test_a_stream_of_a_journal_gives_the_same(spark: SparkSession, tmp_path: Path) -> None:
    said = traffic(2)
    write_journals(tmp_path, [*said, Said(300, 5000 * S, publisher=9, position=len(said))])
    values = JOB.values({"gap_s": "90"})
    wanted = expected(said, 90 * S)
    batch = JOB.run(read_journals(spark, tmp_path, JOB, values, is_stream=False), values)
    assert [row for row in rows_of(batch) if row[2] != 9] == wanted
    stream = JOB.run(read_journals(spark, tmp_path, JOB, values, is_stream=True), values)
    assert streamed(stream, JOB.output_mode or "") == wanted
