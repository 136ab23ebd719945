import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.desk import Said, numbered, read_journals, rows_of, table_of, write_journals

from weft.pipeline.entry import entry_nodes
from weft.pipeline.jobs.matrix import JOB, matrix

NODES = ("london", "paris", "rome")
# The origin of what enters at each, and how wrong its clock is.
ORIGINS = {"london": 30, "paris": 10, "rome": 20}
SKEW_US = {"london": 0, "paris": 70_000, "rome": -50_000}
WAY_US = 20_000


def mesh(wanted: dict[str, set[str]], count: int = 150) -> list[Said]:
    """The journals of three gateways: all that enters there, and what each wants of the others.

    A message takes a while from one to another, and is stamped with the clock of its entry.
    """
    chance = random.Random(1)
    written: list[tuple[int, Said]] = []
    for sequence in range(count):
        for entry in NODES:
            time_us = sequence * 40_000 + chance.randrange(40_000)
            each = Said(
                sequence,
                time_us + SKEW_US[entry],
                subject=chance.choice(["a", "b"]),
                origin=ORIGINS[entry],
                node=entry,
            )
            written.append((time_us, each))
            written += [
                (time_us + WAY_US, each._replace(node=node))
                for node in NODES
                if node != entry and each.subject in wanted[node]
            ]
    return numbered(each for _, each in sorted(written))


def entries_of(spark: SparkSession, said: list[Said]) -> dict[int, str]:
    found = entry_nodes(table_of(spark, said)).collect()
    return {row["origin"]: row["entry"] for row in found}


RIGHT = {origin: node for node, origin in ORIGINS.items()}


@pytest.mark.parametrize("wanted", [set(), {"a"}, {"a", "b"}], ids=["none", "some", "all"])
def test_the_entry_is_found_whatever_the_others_want(spark: SparkSession, wanted: set[str]) -> None:
    assert entries_of(spark, mesh(dict.fromkeys(NODES, wanted))) == RIGHT


def test_a_copy_that_came_twice_makes_no_entry(spark: SparkSession) -> None:
    said = mesh({node: {"a"} for node in NODES})
    doubled = [each for each in said if each.node == "rome" for _ in range(3)]
    others = [each for each in said if each.node != "rome"]
    assert entries_of(spark, numbered([*others, *doubled])) == RIGHT


def test_a_gateway_that_hears_nobody_is_the_entry_of_what_it_has(spark: SparkSession) -> None:
    said = [Said(n, n, node=node) for n in range(5) for node in ("london", "paris")]
    others = [Said(n, n, origin=8, node="london") for n in range(9)]
    mixed = sorted([*said, *others], key=lambda each: (each.at_us, each.origin))
    assert entries_of(spark, numbered(mixed)) == {7: "paris", 8: "london"}


def test_who_has_the_earliest_is_the_entry_where_the_numbers_are_equal(
    spark: SparkSession,
) -> None:
    london = [Said(n, node="london") for n in (2, 3, 4)]
    paris = [Said(n, node="paris") for n in (1, 2, 3)]
    assert entries_of(spark, numbered([*london, *paris])) == {7: "paris"}


def test_where_nothing_tells_the_first_by_name_is_taken(spark: SparkSession) -> None:
    said = [Said(n, node=node) for node in ("paris", "london") for n in range(3)]
    assert entries_of(spark, numbered(said)) == {7: "london"}


@pytest.mark.req("SPK-4")
def test_traffic_between_three_gateways_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    said = mesh({"london": {"a", "b"}, "paris": {"a"}, "rome": set()})
    counts = {
        (entry, node): sum(each.node == node and each.origin == ORIGINS[entry] for each in said)
        for entry in NODES
        for node in NODES
    }
    expected = sorted(
        ("weather", entry, node, count, 4 * count)
        for (entry, node), count in counts.items()
        if count
    )
    assert len(expected) == 7
    write_journals(tmp_path, said)
    assert rows_of(matrix(table_of(spark, said))) == expected
    assert rows_of(matrix(read_journals(spark, tmp_path, JOB, {}, is_stream=False))) == expected
