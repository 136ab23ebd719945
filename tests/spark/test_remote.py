"""Journals that are read from the gateways themselves."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.attacks.gateway_process import GatewayProcess

import weft

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
        ({"gateways": "127.0.0.1:1", "waitSeconds": "1"}, "127.0.0.1:1 does not lend its journal"),
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
