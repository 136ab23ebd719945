import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.desk import Said, numbered, read_journals, rows_of, table_of, write_journals

from weft.pipeline.entry_gateway import entry_nodes
from weft.pipeline.jobs.matrix import JOB, matrix

NODES = ("london", "paris", "rome")
# The origin of what enters at each.
ORIGINS = {"london": 30, "paris": 10, "rome": 20}


def mesh(wanted: dict[str, set[str]], count: int = 50) -> list[Said]:
    """The journals of three gateways: all that enters there, and what each wants of the others."""
    chance = random.Random(1)
    said = []
    for sequence in range(count):
        for entry in NODES:
            subject = chance.choice(["a", "b"])
            each = Said(sequence, sequence, subject, origin=ORIGINS[entry], node=entry)
            said.append(each)
            others = [node for node in NODES if node != entry and subject in wanted[node]]
            said += [each.heard_at(node) for node in others]
    return numbered(said)


@pytest.mark.parametrize("wanted", [set(), {"a"}, {"a", "b"}], ids=["none", "some", "all"])
def test_the_entry_is_known_whatever_the_others_want(spark: SparkSession, wanted: set[str]) -> None:
    said = mesh(dict.fromkeys(NODES, wanted))
    found = entry_nodes(table_of(spark, said)).collect()
    assert {row["entry"]: row["origin"] for row in found} == ORIGINS
    assert len(found) == len(ORIGINS)


def test_what_entered_where_no_journal_is_comes_from_an_unknown_gateway(
    spark: SparkSession,
) -> None:
    said = [Said(1), Said(2), Said(1, origin=8).heard_at("paris"), Said(1).heard_at("paris")]
    assert rows_of(matrix(table_of(spark, said))) == [
        ("weather", "?", "paris", 1, 4),
        ("weather", "london", "london", 2, 8),
        ("weather", "london", "paris", 1, 4),
    ]


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
