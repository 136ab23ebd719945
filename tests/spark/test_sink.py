from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.attacks.gateway_process import GatewayProcess
from tests.spark.conftest import Book

import weft


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that keeps what Spark writes."""
    folder = tmp_path_factory.mktemp("sink")
    settings = {"name": "sink", "data": str(folder / "data"), "journal.patterns": ["out.>"]}
    with GatewayProcess(folder, settings) as running:
        yield running


def address(gateway: GatewayProcess) -> str:
    return f"127.0.0.1:{gateway.port}"


def write(frame: DataFrame, gateway: GatewayProcess, **options: str) -> None:
    options = {"gateways": address(gateway), **options}
    frame.write.format("weft").mode("append").options(**options).save()


def kept(gateway: GatewayProcess, pattern: str, count: int) -> list[weft.Received]:
    """What the journal has of a pattern, and that it has no more."""
    with weft.Connection(address(gateway)) as connection:
        connection.publish(pattern.replace(">", "end"), {"end": True}, acknowledge=True)
        found: list[weft.Received] = []
        for message in connection.subscribe(pattern, since=0):
            if "end" in message:
                break
            found.append(message)
    assert len(found) == count
    return found


def test_rows_become_messages_with_their_columns_as_fields(
    spark: SparkSession, gateway: GatewayProcess
) -> None:
    when = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)
    frame = spark.createDataFrame(
        [
            ("out.fields.a", 1, 0.5, "x", when, [1, 2], None),
            ("out.fields.b", 2, 1.5, None, when, [], True),
        ],
        "subject string, n bigint, half double, text string, at timestamp, items array<bigint>,"
        " yes boolean",
    )
    write(frame.coalesce(1), gateway)
    one, two = kept(gateway, "out.fields.>", 2)
    assert (one.subject, one.to_dict()) == (
        "out.fields.a",
        {"n": 1, "half": 0.5, "text": "x", "at": when, "items": [1, 2]},
    )
    assert two.to_dict() == {"n": 2, "half": 1.5, "at": when, "items": [], "yes": True}


def test_a_payload_is_the_whole_body_and_one_subject_may_be_for_all(
    spark: SparkSession, gateway: GatewayProcess
) -> None:
    frame = spark.createDataFrame([(b"\x00\xff", "out.answers")], "payload binary, reply string")
    write(frame, gateway, subject="out.payload.x")
    frame = spark.createDataFrame([("sensors.a", 7)], "subject string, n int")
    write(frame, gateway, subject="out.payload.y")
    one, two = kept(gateway, "out.payload.>", 2)
    assert (one.payload, one.reply) == (b"\x00\xff", "out.answers")
    assert (two.subject, two.to_dict()) == ("out.payload.y", {"subject": "sensors.a", "n": 7})


def test_a_table_of_no_rows_writes_nothing(spark: SparkSession, gateway: GatewayProcess) -> None:
    write(spark.createDataFrame([], "subject string, n int"), gateway)
    kept(gateway, "out.nothing.>", 0)


def test_every_row_of_every_partition_is_written_once(
    spark: SparkSession, gateway: GatewayProcess
) -> None:
    rows = spark.range(20_000).selectExpr("concat('out.many.', id % 7) AS subject", "id AS n")
    write(rows.repartition(5), gateway)
    found = kept(gateway, "out.many.>", 20_000)
    assert sorted(message["n"] for message in found) == list(range(20_000))


def staged(gateway: GatewayProcess) -> list[str]:
    """The writers and parts that the gateway keeps."""
    folder = gateway.log_file.parent / "data/staged/service=default/node=sink"
    return [str(path.relative_to(folder)) for path in folder.rglob("*")]


def test_a_gateway_keeps_nothing_of_a_table_that_was_written(
    spark: SparkSession, gateway: GatewayProcess
) -> None:
    before = staged(gateway)
    rows = spark.range(100).selectExpr("'out.kept.x' AS subject", "id AS n").repartition(2)
    for _ in range(2):
        write(rows, gateway)
    kept(gateway, "out.kept.>", 200)
    assert staged(gateway) == before


def test_a_gateway_keeps_no_rows_of_a_task_that_failed(
    spark: SparkSession, gateway: GatewayProcess
) -> None:
    frame = spark.range(2000).selectExpr(
        "IF(id = 1999, NULL, 'out.failed.x') AS subject", "repeat('x', 1000) AS text"
    )
    with pytest.raises(PySparkException, match="its subject is null"):
        write(frame.coalesce(1), gateway)
    assert not [path for path in staged(gateway) if path.endswith(".rows")]


@pytest.mark.req("SPK-1", "SPK-2")
def test_a_stream_that_is_restarted_writes_each_batch_once(
    spark: SparkSession, gateway: GatewayProcess, book: Book, tmp_path: Path
) -> None:
    def run() -> None:
        stream = (
            spark.readStream.format("weft")
            .options(path=str(book.root), service="weather", startingOffsets="earliest")
            .option("maxOffsetsPerTrigger", "40")
            .schema("n bigint")
            .load()
            .selectExpr("'out.stream.x' AS subject", "n")
        )
        query = (
            stream.writeStream.format("weft")
            .options(gateways=address(gateway), checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    book.numbers(100)
    run()
    # As if the driver had been killed after the sink's word and before it wrote down its own.
    commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]"))
    assert [path.name for path in commits] == ["0", "1", "2"]
    commits[-1].unlink()
    book.numbers(50, first=100)
    run()
    found = kept(gateway, "out.stream.>", 150)
    assert [message["n"] for message in found] == list(range(150))


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ("n int", {}, "no subject: add a column"),
        ("subject int", {}, "must be a string"),
        ("subject string, payload int", {}, "must be binary or a string"),
        ("subject string, payload binary, n int", {}, "there can be no fields: n"),
        ("subject string, n interval day to second", {}, "has no field type"),
        ("n int", {"subject": "a..b"}, "subject"),
        ("n int", {"gatway": "x"}, "did you mean 'gateways'"),
        ("n int", {"gateways": "a:1,b:2", "subject": "a"}, "give one gateway"),
        ("n int", {"gateways": "a:99999", "subject": "a"}, "99999"),
    ],
)
def test_mistakes_are_named_before_anything_is_written(
    spark: SparkSession, gateway: GatewayProcess, columns: str, options: dict[str, str], text: str
) -> None:
    with pytest.raises(PySparkException, match=text):
        write(spark.createDataFrame([], columns), gateway, **options)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ((None, "x"), "its subject is null"),
        (("out..x", "x"), "out..x"),
        (("_WEFT.event.x", "x"), "belongs to the system"),
        (("out.x", "x" * (1 << 20)), "body"),
    ],
)
def test_a_row_that_cannot_be_a_message_ends_the_job_and_nothing_of_it_goes_out(
    spark: SparkSession, gateway: GatewayProcess, row: tuple[Any, ...], text: str
) -> None:
    frame = spark.createDataFrame([("out.bad.x", "good"), row], "subject string, text string")
    with pytest.raises(PySparkException, match=text):
        write(frame.coalesce(1), gateway)
    kept(gateway, "out.bad.>", 0)


def test_messages_cannot_be_overwritten(spark: SparkSession, gateway: GatewayProcess) -> None:
    frame = spark.createDataFrame([("a", 1)], "subject string, n int")
    writing = frame.write.format("weft").mode("overwrite").options(gateways=address(gateway))
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        writing.save()


def test_a_gateway_that_is_not_there_is_named_after_a_while(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("out.x", 1)], "subject string, n int")
    options = {"gateways": "127.0.0.1:1", "waitSeconds": "1"}
    with pytest.raises(PySparkException, match="no gateway answers at tcp:"):
        frame.write.format("weft").mode("append").options(**options).save()
