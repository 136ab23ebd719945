from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.attacks.gateway_process import GatewayProcess
from tests.pipeline.desk import Said, moment, table_of, write_journals

import weft
from weft.errors import BadOption
from weft.pipeline.jobs.hot_routes import hot_routes
from weft.pipeline.jobs.replay import JOB as REPLAY
from weft.pipeline.sink import Folder, StreamPlan, Subject, for_spark
from weft.pipeline.source import Source

SAID = [Said(n, n, position=n) for n in range(20)]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway that keeps what is published to it."""
    folder = tmp_path_factory.mktemp("gateway")
    settings = {"name": "sink", "data": str(folder / "data"), "journal.patterns": [">"]}
    with GatewayProcess(folder, settings) as running:
        yield f"127.0.0.1:{running.port}"


@pytest.mark.req("SPK-4")
def test_what_is_hot_is_published_as_fields(spark: SparkSession, gateway: str) -> None:
    hot = hot_routes(table_of(spark, SAID), messages_s=20.0)
    with weft.Connection(gateway) as connection:
        published = connection.subscribe("_WEFT.PIPELINE.hot_routes")
        connection.flush()
        Subject(gateway, "default", "_WEFT.PIPELINE.hot_routes").write(hot)
        row = published.next(30).to_dict()
    assert (row["subject"], row["node"], row["origin"]) == ("sensors.a", "london", 7)
    assert (row["start"], row["messages_s"], row["ttl_s"]) == (moment(0), 20.0, 10.0)


@pytest.mark.req("SPK-4")
def test_what_was_said_is_said_again(spark: SparkSession, gateway: str, tmp_path: Path) -> None:
    typed = Said(20, 20, "b", position=20, sent_us=5)
    write_journals(tmp_path, [*SAID, typed])
    source = Source(path=tmp_path, service="weather")
    values = REPLAY.values({"prefix": "again"})
    rows = REPLAY.run(source.for_job(spark, REPLAY, values, is_stream=False), values)
    with weft.Connection(gateway) as connection:
        again = connection.subscribe("again.>")
        connection.flush()
        Subject(gateway, "default", None).write(rows)
        found = [again.next(30) for _ in range(21)]
    assert [(each.subject, each.payload) for each in found[:20]] == [
        ("again.sensors.a", b"four") for _ in SAID
    ]
    assert (found[20].subject, found[20].to_dict()) == ("again.b", {"sent": moment(5)})


def test_places_are_those_of_our_own_folder_and_not_of_sparks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert for_spark("./kept") == str(tmp_path / "kept")
    assert for_spark("s3://bucket/kept") == "s3://bucket/kept"


def test_a_folder_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "out"))
    table = table_of(spark, SAID).select("sequence")
    folder.write(table)
    assert spark.read.parquet(folder.path).count() == 20
    with pytest.raises(BadOption, match="out is not empty: give a new folder"):
        folder.write(table)


def test_a_stream_to_a_folder_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "out"))
    flow = StreamPlan(None, "append", str(tmp_path / "checkpoint"))
    source = Source(path=tmp_path, service="weather", since=None)

    def run() -> list[int]:
        stream = source.stream(spark).select("position")
        assert folder.start(stream, flow).awaitTermination(60)
        return [row["position"] for row in spark.read.parquet(folder.path).collect()]

    # A new stream begins with what comes.
    write_journals(tmp_path, SAID[:10])
    assert run() == []
    write_journals(tmp_path, SAID[10:])
    assert sorted(run()) == list(range(10, 20))
    assert sorted(run()) == list(range(10, 20))
