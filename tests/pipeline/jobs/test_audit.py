import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.desk import Said, numbered, read_journals, rows_of, table_of, write_journals

from weft.pipeline.jobs.audit import JOB, audit

# What entered in London, and what Paris wanted of it.
CLEAN = numbered(
    [
        *[Said(n, n, subject="ab"[n % 2]) for n in range(0, 40, 2)],
        *[Said(n, n, subject="ab"[n % 2]) for n in range(1, 40, 4)],
        *[Said(n, n, subject="a").heard_at("paris") for n in range(10, 30, 2)],
    ]
)
ORDERED = numbered(sorted(CLEAN, key=lambda each: each.sequence))


AGAIN = Said(12, 12, subject="a").heard_at("paris")
LONDON = [each for each in ORDERED if each.node == "london"]
PARIS = [each for each in ORDERED if each.node == "paris"]
CASES: dict[str, tuple[list[Said], list[tuple[Any, ...]]]] = {
    "a clean mesh has no faults": (ORDERED, []),
    "what the entry has and another lacks is lost": (
        [*LONDON, *PARIS[:2], *PARIS[3:]],
        [("lost", "paris", 7, "a", 14, 14, 1)],
    ),
    "it is only known where it entered what was said": (
        [*[each.heard_at("rome") for each in PARIS], *PARIS[:2], *PARIS[3:]],
        [],
    ),
    "before the first and after the last nothing is lost": ([*LONDON, *PARIS[2:-2]], []),
    "the same message twice is doubled and not misordered": (
        [*ORDERED, AGAIN, AGAIN],
        [("doubled", "paris", 7, "a", 12, 12, 2)],
    ),
    "an earlier message after a later one is misordered": (
        [*LONDON, *PARIS[:2], PARIS[4], *PARIS[2:4], *PARIS[5:]],
        [("misordered", "paris", 7, "a", 14, 16, 2)],
    ),
    "publishers are not in order with each other": (
        [Said(2, publisher=1), Said(1, publisher=2), Said(4, publisher=1)],
        [],
    ),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, list[tuple[Any, ...]]]:
    """The faults of every case: each is a service, so that one query finds them all."""
    said = [
        each._replace(service=name)
        for name, (messages, _) in CASES.items()
        for each in numbered(messages)
    ]
    rows = rows_of(audit(table_of(spark, said)))
    return {name: [(row[0], *row[2:]) for row in rows if row[1] == name] for name in CASES}


@pytest.mark.req("SPK-4")
@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_told(found: dict[str, list[tuple[Any, ...]]], name: str) -> None:
    assert found[name] == CASES[name][1]


@pytest.mark.req("SPK-4")
def test_positions_that_a_journal_lacks_are_told(spark: SparkSession, tmp_path: Path) -> None:
    write_journals(tmp_path, [each for each in ORDERED if not 5 <= each.position <= 7])
    table = read_journals(spark, tmp_path, JOB, {}, is_stream=False)
    kinds = rows_of(audit(table))
    assert [row for row in kinds if row[0] == "missing_positions"] == [
        ("missing_positions", "weather", "london", None, None, 5, 7, 3),
        ("missing_positions", "weather", "paris", None, None, 5, 7, 3),
    ]


def world(name: str, chance: random.Random) -> list[Said]:
    """A small mesh of a service of its own, where everything goes wrong now and then."""
    journals: dict[str, list[Said]] = {node: [] for node in ("london", "paris", "rome")}
    for sequence in range(chance.randrange(1, 20)):
        each = Said(
            sequence,
            subject=chance.choice("ab"),
            publisher=chance.randrange(2),
            origin=1,
            service=name,
        )
        for node, journal in journals.items():
            copies = chance.choices([0, 1, 2, 3], [1, 8, 1, 0.3])[0]
            for _ in range(copies):
                at = len(journal) - chance.choices([0, 1, 3], [9, 1, 1])[0]
                found = each if node == each.node else each.heard_at(node)
                journal.insert(max(at, 0), found)
    said = numbered(each for journal in journals.values() for each in journal)
    return [each for each in said if chance.random() > 0.03]


def reference(said: list[Said]) -> list[tuple[Any, ...]]:
    """The faults of one world, found the long way."""
    service = said[0].service
    found: list[tuple[Any, ...]] = []
    wrong: dict[tuple[str, str, str], Counter[int]] = defaultdict(Counter)
    journals = {
        node: sorted((each for each in said if each.node == node), key=lambda each: each.position)
        for node in ("london", "paris", "rome")
    }
    for node, journal in journals.items():
        for one, other in pairwise(each.position for each in journal):
            if other > one + 1:
                lacks = (None, None, one + 1, other - 1, other - one - 1)
                found.append(("missing_positions", service, node, *lacks))
        for kind, each in [*late_or_again(journal), *lacking(journal, journals["london"])]:
            wrong[kind, node, each.subject][each.sequence] += 1
    for (kind, node, subject), counts in wrong.items():
        row = (1, subject, min(counts), max(counts), counts.total())
        found.append((kind, service, node, *row))
    return found


def late_or_again(journal: list[Said]) -> Iterator[tuple[str, Said]]:
    seen: set[int] = set()
    reached: dict[int, int] = {}
    for each in journal:
        if each.sequence in seen:
            yield "doubled", each
            continue
        seen.add(each.sequence)
        if each.sequence < reached.get(each.publisher, -1):
            yield "misordered", each
        reached[each.publisher] = max(reached.get(each.publisher, -1), each.sequence)


def lacking(journal: list[Said], entry: list[Said]) -> Iterator[tuple[str, Said]]:
    for each in {each.sequence: each for each in entry}.values():
        own = [one.sequence for one in journal if one.subject == each.subject]
        if own and min(own) < each.sequence < max(own) and each.sequence not in own:
            yield "lost", each


@pytest.mark.req("SPK-4")
def test_it_agrees_with_looking_the_long_way(spark: SparkSession) -> None:
    chance = random.Random(3)
    worlds = [world(f"w{number}", chance) for number in range(150)]
    wanted = sorted((row for each in worlds for row in reference(each)), key=repr)
    assert {row[0] for row in wanted} == {"lost", "doubled", "misordered", "missing_positions"}
    everything = [each for said in worlds for each in said]
    assert rows_of(audit(table_of(spark, everything))) == wanted
