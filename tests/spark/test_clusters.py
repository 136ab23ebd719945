"""The same job on this machine, on a standalone cluster and through Spark Connect."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.clusters import FAST_JAVA, connect_server, driver, standalone
from tests.spark.conftest import Book
from tests.spark.job import Data, answer

from weft.journal.parquet.seal import seal_all

PLACES = ("local", "standalone", "connect")
ON_A_CLUSTER = {
    "spark.driver.extraJavaOptions": FAST_JAVA,
    "spark.driver.memory": "768m",
    "spark.executor.extraJavaOptions": FAST_JAVA,
    "spark.executor.memory": "512m",
    "spark.python.authenticate.socketTimeout": "120s",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}

Run = Callable[[Path, Path], dict[str, Any]]


@contextlib.contextmanager
def runs(spark: SparkSession, folder: Path) -> Iterator[dict[str, Run]]:
    """The job on every master; the clusters start side by side."""

    def on_standalone() -> Run:
        address = stack.enter_context(standalone(folder))
        return stack.enter_context(driver(address, ON_A_CLUSTER)).run

    def on_connect() -> Run:
        address = stack.enter_context(connect_server())
        return stack.enter_context(driver(address, ON_A_CLUSTER)).run

    def on_local(journal: Path, results: Path) -> dict[str, Any]:
        return answer(spark, Data(str(journal), str(results)))

    with contextlib.ExitStack() as stack, ThreadPoolExecutor() as threads:
        others = threads.submit(on_standalone), threads.submit(on_connect)
        yield dict(zip(PLACES, (on_local, *(each.result() for each in others)), strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clusters")


@pytest.fixture(scope="module")
def answers(spark: SparkSession, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """What the job said on each master: at first, and after more was written."""
    book = Book(folder / "journal")

    def everywhere() -> dict[str, dict[str, Any]]:
        # One after the other: Spark gives the Python of a stream 10 s to begin, however busy the
        # machine is, and no setting changes that.
        return {where: run(book.root, folder / where) for where, run in job_on.items()}

    with runs(spark, folder) as job_on:
        book.numbers(30)
        book.numbers(7, node="paris")
        first = everywhere()
        list(seal_all(book.root, "weather", "london"))
        book.numbers(15, first=30)
        book.numbers(5, first=45, is_open=True)
        rounds = [first, everywhere()]
    return {where: [said[where] for said in rounds] for where in PLACES}


def totals(*counts: int) -> list[list[Any]]:
    """What nodes with so many numbered messages each add up to."""
    numbers = [number for count in counts for number in range(count)]
    return [
        [subject, len(mine), sum(mine), sum(mine) / 2]
        for subject, mine in (
            ("sensors.a", [number for number in numbers if number % 2 == 0]),
            ("sensors.b", [number for number in numbers if number % 2]),
        )
    ]


def copies(london: int, paris: int) -> list[list[Any]]:
    """Each message of both nodes, once."""
    return [
        *(["london", number, number] for number in range(london)),
        *(["paris", number, number] for number in range(paris)),
    ]


@pytest.mark.req("SPK-6")
@pytest.mark.parametrize("where", PLACES)
def test_a_batch_says_the_same_on_every_master(
    answers: dict[str, list[dict[str, Any]]], where: str
) -> None:
    said = [each["totals"] for each in answers[where]]
    assert said == [totals(30, 7), totals(50, 7)]


@pytest.mark.req("SPK-6")
@pytest.mark.parametrize("where", PLACES)
def test_a_shipped_job_says_the_same_on_every_master(
    answers: dict[str, list[dict[str, Any]]], where: str
) -> None:
    # What entered at either node adds up.
    began_us = 1_700_000_000_000_000
    said = [each["rates"] for each in answers[where]]
    assert said == [
        [[began_us, "sensors.a", london + 4], [began_us, "sensors.b", london + 3]]
        for london in (15, 25)
    ]


@pytest.mark.req("SPK-2", "SPK-6")
@pytest.mark.parametrize("where", PLACES)
def test_a_stream_goes_on_from_its_checkpoint_on_every_master(
    answers: dict[str, list[dict[str, Any]]], where: str
) -> None:
    said = [each["copied"] for each in answers[where]]
    assert said == [copies(30, 7), copies(50, 7)]


def test_each_ran_where_it_was_told_and_in_the_same_time_zone(
    answers: dict[str, list[dict[str, Any]]], folder: Path
) -> None:
    sessions = {where: {each["session"] for each in said} for where, said in answers.items()}
    assert sessions == {
        "local": {"pyspark.sql.session"},
        "standalone": {"pyspark.sql.session"},
        "connect": {"pyspark.sql.connect.session"},
    }
    zones = {each["zone"] for said in answers.values() for each in said}
    assert zones == {"UTC"}
    executors = [list(folder.glob(f"worker-{number}/app-*/*/stderr")) for number in range(2)]
    assert [len(each) for each in executors] == [1, 1]
