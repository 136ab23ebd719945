"""Journals that are read from the gateways themselves."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType
from tests.attacks.gateway_process import GatewayProcess, eventually

import weft
from weft.errors import Unreachable
from weft.journal.read.arrow_batches import Lost, batches_in
from weft.spark import remote
from weft.spark.source import JournalPartition, WeftStreamReader

NODES = ("london", "paris", "rome")


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, GatewayProcess]]:
    """Three gateways, each with a journal of its own."""
    with ExitStack() as stack:
        running = {}
        for node in NODES:
            folder = tmp_path_factory.mktemp(node)
            settings = {"name": node, "data": str(folder), "journal.patterns": [">"]}
            running[node] = stack.enter_context(GatewayProcess(folder, settings))
        yield running


def addresses(gateways: dict[str, GatewayProcess]) -> str:
    return ",".join(each.address for each in gateways.values())


def publish(gateway: GatewayProcess, *numbers: int) -> None:
    with weft.Connection(gateway.address) as connection:
        for number in numbers:
            connection.publish("a.b", {"n": number}, acknowledge=True)


@pytest.mark.req("SPK-1", "SPK-2")
def test_a_stream_reads_from_several_gateways_and_goes_on_where_it_was(
    spark: SparkSession, gateways: dict[str, GatewayProcess], tmp_path: Path
) -> None:
    options = {"gateways": addresses(gateways), "startingOffsets": "earliest"}
    schema = "node string, position bigint, n bigint"

    def copied() -> DataFrame:
        source = spark.readStream.format("weft").options(**options).schema(schema).load()
        query = (
            source.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "copy"))
        )
        query.awaitTermination()
        return spark.read.parquet(str(tmp_path / "copy"))

    for number, node in enumerate(NODES):
        publish(gateways[node], number, number + 10)
    assert sorted(row["n"] for row in copied().collect()) == [0, 1, 2, 10, 11, 12]
    publish(gateways["rome"], 20)
    rows = copied().collect()
    assert sorted(row["n"] for row in rows) == [0, 1, 2, 10, 11, 12, 20]
    everything = spark.read.format("weft").options(**options).schema(schema).load()
    assert sorted(everything.collect()) == sorted(rows)
    late = everything.where("node = 'rome'").agg({"position": "max"}).first()
    assert late is not None
    assert late[0] == 2


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"gateways": "127.0.0.1:1", "waitSeconds": "1"}, "127.0.0.1:1 does not serve its journal"),
        ({"gateways": "not an address:x"}, "not an address"),
        ({"gateways": "a:1", "path": "/"}, "not both"),
        ({}, "path.* or gateways"),
    ],
)
def test_what_is_wrong_with_gateways_is_said(
    spark: SparkSession, given: dict[str, str], text: str
) -> None:
    with pytest.raises(PySparkException, match=text):
        spark.read.format("weft").options(**given).load().collect()


def test_one_gateway_is_not_read_twice(
    spark: SparkSession, gateways: dict[str, GatewayProcess]
) -> None:
    twice = f"{gateways['london'].address},{gateways['london'].address}"
    with pytest.raises(PySparkException, match="are both 'london'"):
        spark.read.format("weft").option("gateways", twice).load().collect()


def gateway(folder: Path, node: str, listen: str = "127.0.0.1:0") -> GatewayProcess:
    data = folder / node
    data.mkdir(exist_ok=True)
    given = {"name": node, "data": str(data), "journal.patterns": [">"], "listen": listen}
    return GatewayProcess(data, given)


def reader(given: str, **options: str) -> WeftStreamReader:
    return WeftStreamReader(
        StructType(), {"gateways": given, "startingOffsets": "earliest", **options}
    )


def read_all(stream: WeftStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    """The nodes of the messages between two offsets."""
    parts = [part for part in stream.partitions(start, end) if isinstance(part, JournalPartition)]
    found = [(part.place.node, batches_in(part.place, (b">",), may_lack=False)) for part in parts]
    return [node for node, batches in found for batch in batches for _ in range(batch.num_rows)]


def test_a_stream_goes_on_without_a_gateway_that_is_down_and_with_it_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "AWAY_S", 0.1)
    with gateway(tmp_path, "london") as london:
        with gateway(tmp_path, "paris") as paris:
            stream = reader(f"{london.address},{paris.address}")
            publish(london, 1)
            publish(paris, 1, 2)
            start = stream.initialOffset()
            first = stream.latestOffset(start, ReadAllAvailable())
            assert read_all(stream, start, first) == ["london", "paris", "paris"]
            publish(paris, 3)
        publish(london, 2, 3)
        second = stream.latestOffset(first, ReadAllAvailable())
        assert read_all(stream, first, second) == ["london", "london"]
        assert (second["london"], second["paris"]) == (3, 2)
        # A driver that is started meanwhile goes on, too.
        again = reader(f"{london.address},{paris.address}")
        assert again.latestOffset(second, ReadAllAvailable()) == second
        assert read_all(again, first, second) == ["london", "london"]
        with gateway(tmp_path, "paris", f"127.0.0.1:{paris.port}"):
            found: list[dict[str, Any]] = []

            def has_come_back() -> bool:
                found.append(stream.latestOffset(second, ReadAllAvailable()))
                return bool(found[-1] != second)

            eventually(has_come_back, "paris never came back")
            assert read_all(stream, second, found[-1]) == ["paris"]


def test_a_stream_of_which_no_gateway_answers_ends_after_a_while(tmp_path: Path) -> None:
    with gateway(tmp_path, "london") as london:
        stream = reader(f"{london.address},127.0.0.1:1", waitSeconds="1")
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1 does not serve its journal"):
            stream.initialOffset()
    with pytest.raises(Unreachable, match="none of the gateways serves its journal"):
        stream.latestOffset({"london": 0}, ReadAllAvailable())


@pytest.mark.req("SPK-2")
def test_a_lent_journal_that_was_begun_again_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    with gateway(tmp_path, "london") as london:
        publish(london, *range(3))
        stream = reader(london.address)
        offset = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
        assert offset["london"] == 3
    shutil.rmtree(tmp_path / "london" / "journal")
    with gateway(tmp_path, "london", f"127.0.0.1:{london.port}") as london:
        publish(london, *range(5))
        with pytest.raises(Lost, match="the journal of node london was begun again"):
            stream.latestOffset(offset, ReadAllAvailable())
        stream = reader(london.address, failOnDataLoss="false")
        after = stream.latestOffset(offset, ReadAllAvailable())
        assert read_all(stream, offset, after) == ["london"] * 5
