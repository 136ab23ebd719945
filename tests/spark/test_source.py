import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType
from tests.journal.desk import batch_of, message, place_in
from tests.spark.conftest import Book

from weft.errors import BadOption
from weft.journal.parquet.seal import seal_all
from weft.journal.read.arrow_batches import Lost
from weft.journal.segment.blocks import Block, blocks_in, salt_of, seal_batch
from weft.journal.segment.file_names import segments_of
from weft.journal.segment.recovery import recover
from weft.spark.source import JournalPartition, WeftStreamReader
from weft.wire.message.message import Message

Read = Callable[..., DataFrame]


@pytest.fixture
def read(spark: SparkSession, book: Book) -> Read:
    """Read the journal as a table: `read(schema, option=value)`."""

    def load(schema: str | None = None, **options: str) -> DataFrame:
        given = {"path": str(book.root), "service": "weather", **options}
        reader = spark.read.format("weft").options(**given)
        return (reader if schema is None else reader.schema(schema)).load()

    return load


def positions(frame: DataFrame) -> list[int]:
    return sorted(row["position"] for row in frame.select("position").collect())


@pytest.mark.req("SPK-1")
def test_a_journal_is_a_table_sealed_full_and_open_alike(book: Book, read: Read) -> None:
    book.numbers(30)
    list(seal_all(book.root, "weather", "london"))
    book.numbers(20, first=30)
    book.numbers(5, first=50, is_open=True)
    rows = read().orderBy("position").collect()
    assert [row["position"] for row in rows] == list(range(55))
    first = rows[0].asDict()
    assert Message.from_body(bytes(first.pop("payload")))["n"] == 0
    assert str(first.pop("timestamp")) == "2023-11-14 22:13:20"
    assert str(first.pop("date")) == "2023-11-14"
    assert first == {
        "subject": "sensors.a",
        "reply": "",
        "origin": 7,
        "publisher": 3,
        "sequence": 0,
        "node": "london",
        "position": 0,
        "service": "weather",
    }


def test_several_nodes_are_one_table(book: Book, read: Read) -> None:
    book.numbers(10, node="london")
    book.numbers(5, node="paris")
    found = {row["node"]: row["count"] for row in read().groupBy("node").count().collect()}
    assert found == {"london": 10, "paris": 5}
    some = read(startingOffsets='{"london": 8}', endingOffsets='{"london": 9, "paris": 2}')
    assert sorted((row["node"], row["position"]) for row in some.collect()) == [
        ("london", 8),
        ("paris", 0),
        ("paris", 1),
    ]


@pytest.mark.req("SPK-3")
def test_fields_of_messages_are_typed_columns(book: Book, read: Read) -> None:
    book.write(
        [
            Message(city="London", temp=21.5, n=1, dry=True),
            Message(city="Paris", temp=19.0, n=2),
            Message(other=1),
        ]
    )
    rows = read("position bigint, city string, temp double, n int, dry boolean").collect()
    assert sorted(tuple(row) for row in rows) == [
        (0, "London", 21.5, 1, True),
        (1, "Paris", 19.0, 2, None),
        (2, None, None, None, None),
    ]


def test_what_a_journal_has_beside_is_there_for_the_asking(book: Book, read: Read) -> None:
    book.numbers(2)
    list(seal_all(book.root, "weather", "london"))
    book.numbers(1, first=2)
    rows = read("time_ns bigint, flags bigint, node string").collect()
    assert sorted(tuple(row) for row in rows) == [
        (1_700_000_000_000_000_000 + number * 1000, 0, "london") for number in range(3)
    ]


@pytest.fixture
def malformed(book: Book) -> Book:
    """A journal in which two of four messages do not fit `temp double`."""
    wrong = Message.from_body(b"strange")
    book.write([Message(temp=21.5, n=1), Message(temp="warm", n=2), wrong, Message(temp=3.5)])
    return book


@pytest.mark.usefixtures("malformed")
def test_one_malformed_message_costs_no_other(read: Read) -> None:
    rows = read("position bigint, temp double, n int, _corrupt_record string").collect()
    assert sorted(tuple(row) for row in rows) == [
        (0, 21.5, 1, None),
        (1, None, 2, '{"temp":"warm","n":2}'),
        (2, None, None, '{"$blob": "c3RyYW5nZQ=="}'),
        (3, 3.5, None, None),
    ]


@pytest.mark.usefixtures("malformed")
def test_the_column_of_malformed_messages_can_have_another_name_and_bytes(read: Read) -> None:
    frame = read("temp double, bad binary", columnNameOfCorruptRecord="bad", mode="permissive")
    bad = sorted(bytes(row["bad"]) for row in frame.collect() if row["bad"] is not None)
    assert bad == sorted([Message(temp="warm", n=2).encode(), b"strange"])
    assert frame.where("bad IS NULL").count() == 2


@pytest.mark.usefixtures("malformed")
def test_malformed_messages_can_be_dropped(read: Read) -> None:
    rows = read("position bigint, temp double", mode="DROPMALFORMED").collect()
    assert sorted(tuple(row) for row in rows) == [(0, 21.5), (3, 3.5)]


def test_a_stream_survives_a_malformed_message(
    spark: SparkSession, malformed: Book, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("malformed")
    stream = (
        spark.readStream.format("weft")
        .options(path=str(malformed.root), service="weather", startingOffsets="earliest")
        .schema("position bigint, temp double")
        .load()
    )
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    rows = spark.read.parquet(str(folder / "out")).collect()
    assert sorted(tuple(row) for row in rows) == [(0, 21.5), (1, None), (2, None), (3, 3.5)]


def test_with_failfast_a_body_that_is_no_message_is_an_error_that_names_its_place(
    book: Book, read: Read
) -> None:
    book.write([Message(temp=21.5), Message.from_body(b"strange")])
    assert positions(read("position bigint", mode="FAILFAST")) == [0, 1]
    with pytest.raises(PySparkException, match="the message at position 1 cannot be read"):
        read("temp double", mode="FAILFAST").collect()


def test_with_failfast_a_field_of_another_type_is_an_error_that_names_it(
    book: Book, read: Read
) -> None:
    book.write([Message(temp=21.5), Message(temp="warm")])
    with pytest.raises(
        PySparkException, match="field 'temp' of the message at position 1 is 'warm'"
    ):
        read("temp double", mode="FAILFAST").collect()


def test_a_field_named_as_a_standard_column_is_read_where_it_is_asked_for(
    book: Book, read: Read
) -> None:
    book.write([Message(node="left", sequence=1.5, date="2026-11-18")])
    columns = "node string, sequence double, date date, position bigint"
    (row,) = read(columns, fieldColumns="node, sequence,date").collect()
    assert (row["node"], row["sequence"], str(row["date"])) == ("left", 1.5, "2026-11-18")
    assert row["position"] == 0


def test_only_wanted_subjects_are_read(book: Book, read: Read) -> None:
    book.numbers(10)
    list(seal_all(book.root, "weather", "london"))
    book.numbers(10, first=10)
    assert positions(read(subscribe="sensors.b")) == list(range(1, 20, 2))
    assert positions(read(subscribe="none, sensors.a")) == list(range(0, 20, 2))
    assert positions(read(subscribe="none.>")) == []


def test_it_begins_and_ends_where_it_is_told(book: Book, read: Read) -> None:
    book.numbers(30)
    assert positions(read(startingOffsets='{"london": 25}')) == list(range(25, 30))
    assert positions(read(endingOffsets='{"london": 3}')) == [0, 1, 2]
    assert positions(read(startingOffsets="latest")) == []
    late = read(startingTimestamp="2023-11-14T22:13:20.000027Z")
    assert positions(late) == [27, 28, 29]


def test_many_partitions_read_the_same(book: Book, read: Read, monkeypatch: Any) -> None:
    monkeypatch.setattr("weft.spark.source._LEAST_ROWS", 1)
    book.numbers(100)
    frame = read(minPartitions="7")
    assert positions(frame) == list(range(100))


@pytest.mark.parametrize(
    ("rows", "cores", "stretches"),
    [
        (99_999, 2, [(0, 99_999)]),
        (300_000, 2, [(0, 150_000), (150_000, 300_000)]),
        (300_000, 64, [(0, 100_000), (100_000, 200_000), (200_000, 300_000)]),
        (1_100_000, 1, [(0, 500_000), (500_000, 1_000_000), (1_000_000, 1_100_000)]),
    ],
)
def test_partitions_suit_the_cores_and_the_rows(
    book: Book, monkeypatch: Any, rows: int, cores: int, stretches: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    book.numbers(1)
    reader = WeftStreamReader(StructType(), {"path": str(book.root), "service": "weather"})
    parts = reader.partitions({"london": 0}, {"london": rows})
    places = [part.place for part in parts if isinstance(part, JournalPartition)]
    assert [(place.first, place.end) for place in places] == stretches


def test_planning_a_query_does_not_wait_for_pandas() -> None:
    # Spark imports the source anew for every query that it plans.
    program = "import sys, weft.spark.source; sys.exit('pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603  # our own


def test_an_empty_journal_is_an_empty_table(book: Book, read: Read) -> None:
    recover(place_in(book.root))
    assert positions(read()) == []


def test_a_service_without_a_journal_is_an_error(book: Book, read: Read) -> None:
    book.numbers(1)
    with pytest.raises(AnalysisException) as raised:
        read(service="whether").collect()
    assert "has no journal of service 'whether'; services there: weather" in str(raised.value)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"startingOffsets": '{"rome": 0}'}, "names node 'rome'; journals there are of: london"),
        ({"endingOffsets": '{"rome": 0}'}, "names node 'rome'; journals there are of: london"),
        ({"startingOffsets": '{"london": 31}'}, "is position 31 of node london, .* ends at 30"),
        ({"endingOffsets": '{"london": 31}'}, "is position 31 of node london, .* ends at 30"),
        (
            {"startingOffsets": '{"london": 20}', "endingOffsets": '{"london": 10}'},
            "endingOffsets is position 10 of node london, which begins at 20",
        ),
        ({"startingOffsets": "latest", "endingOffsets": '{"london": 10}'}, "which begins at 30"),
        ({"startingOffsets": '{"london": 20}', "endingOffsets": "{}"}, "names london; ending"),
    ],
)
def test_offsets_that_cannot_be_are_errors(
    book: Book, read: Read, options: dict[str, str], text: str
) -> None:
    book.numbers(30)
    with pytest.raises(PySparkException, match=text):
        read(**options).collect()


def test_offsets_beyond_the_end_are_the_end_where_data_may_lack(book: Book, read: Read) -> None:
    book.numbers(30)
    options = {"endingOffsets": '{"london": 99}', "failOnDataLoss": "false"}
    assert positions(read(startingOffsets='{"london": 28}', **options)) == [28, 29]
    assert positions(read(startingOffsets='{"london": 98}', **options)) == []


def test_an_end_before_all_that_is_left_is_an_error_unless_data_may_lack(
    book: Book, read: Read
) -> None:
    book.numbers(10, first=20)
    with pytest.raises(PySparkException, match="position 5 of node london, which begins at 20"):
        read(endingOffsets='{"london": 5}').collect()
    assert positions(read(endingOffsets='{"london": 5}', failOnDataLoss="false")) == []


def test_a_time_after_the_end_is_no_error(book: Book, read: Read) -> None:
    book.numbers(30)
    options = {"startingTimestamp": "2026-11-18", "endingOffsets": '{"london": 10}'}
    assert positions(read(**options)) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"startingOffsets": '{"rome": 0}'}, "names node 'rome'"),
        ({"startingOffsets": '{"london": 31}'}, "is position 31 of node london"),
        ({"endingOffsets": '{"london": 3}'}, "a stream does not end"),
    ],
)
def test_offsets_of_a_stream_that_cannot_be_are_errors(
    book: Book, options: dict[str, str], text: str
) -> None:
    book.numbers(30)
    with pytest.raises(BadOption, match=text):
        WeftStreamReader(
            StructType(), {"path": str(book.root), "service": "weather", **options}
        ).initialOffset()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"servise": "x"}, "no option 'servise'; did you mean 'service'?"),
        ({"startingOffsets": "first"}, "startingOffsets 'first' is not 'earliest', 'latest'"),
        ({"service": "../../etc"}, "is not a valid service name"),
        ({"fieldColumns": "temp"}, "fieldColumns names temp: the schema has no such column"),
    ],
)
def test_a_mistake_is_named(read: Read, options: dict[str, str], text: str) -> None:
    with pytest.raises(AnalysisException) as raised:
        read(**options).collect()
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("sequence double", "option fieldColumns=sequence reads a field of this name instead"),
        ("timestamp string", "column 'timestamp' is a standard column and cannot be string"),
        ("_corrupt_record int", "columnNameOfCorruptRecord gives it another name"),
    ],
)
def test_a_standard_column_of_another_type_is_an_error(read: Read, schema: str, text: str) -> None:
    with pytest.raises(AnalysisException) as raised:
        read(schema).collect()
    assert text in str(raised.value)


def test_what_is_lost_is_an_error_unless_it_may_be(book: Book, read: Read) -> None:
    book.numbers(10)
    book.numbers(10, first=10)
    book.numbers(10, first=20)
    segments_of(book.root, "weather")[1].path.unlink()
    with pytest.raises(PySparkException, match=r"positions 10 … 19 of node london"):
        read().collect()
    assert positions(read(failOnDataLoss="false")) == [*range(10), *range(20, 30)]


def flipped(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("is_open", [True, False])
def test_damage_costs_the_same_rows_however_many_partitions_there_are(
    book: Book, read: Read, monkeypatch: Any, *, is_open: bool
) -> None:
    monkeypatch.setattr("weft.spark.source._LEAST_ROWS", 1)
    book.numbers(500, is_open=is_open)
    (segment,) = segments_of(book.root, "weather")
    data = segment.path.read_bytes()
    blocks = [each for each in blocks_in(data) if isinstance(each, Block)]
    flipped(segment.path, blocks[5].body)
    with pytest.raises(PySparkException, match=r"positions 40 … 49 of node london"):
        read().collect()
    for partitions in ("1", "7"):
        frame = read(failOnDataLoss="false", minPartitions=partitions)
        assert positions(frame) == [*range(40), *range(50, 500)]


@pytest.mark.parametrize("change", ["flipped", "cut"])
def test_a_damaged_sealed_file_costs_what_it_had_and_is_never_read(
    book: Book, read: Read, change: str
) -> None:
    book.numbers(100)
    list(seal_all(book.root, "weather", "london"))
    book.numbers(20, first=100)
    (path,) = book.root.rglob("*.parquet")
    if change == "flipped":
        flipped(path, path.stat().st_size // 3)
    else:
        path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(PySparkException, match="its checksum is"):
        read().collect()
    assert positions(read(failOnDataLoss="false")) == list(range(100, 120))


class Streaming:
    """A streaming query over a journal, whose rows land in a folder."""

    def __init__(self, spark: SparkSession, book: Book, folder: Path) -> None:
        self._spark = spark
        self._book = book
        self._folder = folder

    def run(self, **options: str) -> StreamingQuery:
        """Read what is there since the last run, and end."""
        reader = self._spark.readStream.format("weft").options(
            path=str(self._book.root), service="weather", **options
        )
        query = (
            reader.load()
            .writeStream.format("parquet")
            .option("path", str(self._folder / "out"))
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        return query

    def positions(self) -> list[tuple[str, int]]:
        found = self._spark.read.parquet(str(self._folder / "out"))
        return sorted((row["node"], row["position"]) for row in found.collect())


@pytest.fixture
def streaming(
    spark: SparkSession, book: Book, tmp_path_factory: pytest.TempPathFactory
) -> Streaming:
    return Streaming(spark, book, tmp_path_factory.mktemp("query"))


@pytest.mark.req("SPK-1", "SPK-2")
def test_a_stream_goes_on_where_it_ended_whatever_becomes_of_the_files(
    book: Book, streaming: Streaming
) -> None:
    book.numbers(30)
    streaming.run(startingOffsets="earliest")
    list(seal_all(book.root, "weather", "london"))
    book.numbers(15, first=30)
    book.numbers(5, first=45, is_open=True)
    book.numbers(7, node="paris")
    streaming.run(startingOffsets="earliest")
    streaming.run(startingOffsets="earliest")
    assert streaming.positions() == [
        *[("london", position) for position in range(50)],
        *[("paris", position) for position in range(7)],
    ]


def test_a_batch_holds_no_more_rows_than_it_may(book: Book, streaming: Streaming) -> None:
    book.numbers(50)
    book.numbers(5, node="paris")
    query = streaming.run(startingOffsets="earliest", maxOffsetsPerTrigger="20")
    rows = [progress["numInputRows"] for progress in query.recentProgress]
    assert max(rows) <= 20
    assert sum(rows) == 55
    assert len(streaming.positions()) == 55


def test_a_new_stream_begins_with_what_comes(book: Book, streaming: Streaming) -> None:
    book.numbers(10)
    streaming.run()
    book.numbers(5, first=10)
    streaming.run()
    assert streaming.positions() == [("london", position) for position in range(10, 15)]


def test_how_far_behind_it_is_can_be_seen(book: Book, streaming: Streaming) -> None:
    book.numbers(30)
    query = streaming.run(startingOffsets="earliest", maxOffsetsPerTrigger="10")
    (source,) = query.recentProgress[0]["sources"]
    assert '"london":10' in source["endOffset"].replace(" ", "")
    assert '"london":30' in source["latestOffset"].replace(" ", "")


def test_a_torn_end_is_read_when_it_is_whole(book: Book, streaming: Streaming) -> None:
    book.numbers(10, is_open=True)
    (path,) = book.root.glob("*/_open-*")
    batch = batch_of([message(10)], 10)
    seal_batch(batch, salt_of(path.read_bytes()))
    block = bytes(batch.data[: batch.size])
    with path.open("ab") as file:
        file.write(block[:50])
    streaming.run(startingOffsets="earliest")
    assert len(streaming.positions()) == 10
    with path.open("ab") as file:
        file.write(block[50:])
    streaming.run(startingOffsets="earliest")
    assert streaming.positions()[-1] == ("london", 10)


def begin_again(book: Book) -> None:
    """Remove the journal and begin another one under the same name, as a gateway does."""
    place = place_in(book.root)
    shutil.rmtree(place.folder)
    place.folder.mkdir()
    recover(place)


@pytest.mark.req("SPK-2")
def test_a_journal_that_was_begun_again_is_not_taken_for_the_old_one(
    book: Book, streaming: Streaming
) -> None:
    begin_again(book)
    book.numbers(30)
    streaming.run(startingOffsets="earliest")
    begin_again(book)
    book.numbers(50)
    with pytest.raises(PySparkException, match="the journal of node london was begun again"):
        streaming.run(startingOffsets="earliest")
    streaming.run(startingOffsets="earliest", failOnDataLoss="false")
    book.numbers(5, first=50)
    streaming.run(startingOffsets="earliest")
    again = [("london", position) for position in [*range(30), *range(55)]]
    assert streaming.positions() == sorted(again)


def test_a_journal_that_ends_before_what_was_read_of_it_is_an_error(
    book: Book, streaming: Streaming
) -> None:
    book.numbers(30)
    streaming.run(startingOffsets="earliest")
    for segment in segments_of(book.root, "weather"):
        segment.path.unlink()
    book.numbers(20)
    with pytest.raises(PySparkException, match=r"ends at position 20, and was read up to .* 30"):
        streaming.run(startingOffsets="earliest")
    streaming.run(startingOffsets="earliest", failOnDataLoss="false")
    book.numbers(5, first=20)
    streaming.run(startingOffsets="earliest")
    assert streaming.positions() == sorted(
        ("london", position) for position in [*range(30), *range(20, 25)]
    )


def test_a_batch_of_a_journal_that_is_gone_is_not_read_from_the_new_one(book: Book) -> None:
    begin_again(book)
    book.numbers(30)
    options = {"path": str(book.root), "service": "weather", "startingOffsets": "earliest"}
    reader = WeftStreamReader(StructType(), options)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert len(reader.partitions(start, end)) == 1
    begin_again(book)
    book.numbers(50)
    with pytest.raises(Lost, match="begun again"):
        reader.partitions(start, end)
    reader = WeftStreamReader(StructType(), {**options, "failOnDataLoss": "false"})
    assert reader.partitions(start, end) == []
    after = reader.latestOffset(end, ReadAllAvailable())
    (part,) = reader.partitions(end, after)
    assert isinstance(part, JournalPartition)
    assert (part.place.first, part.place.end) == (0, 50)


def test_a_journal_that_is_removed_from_a_folder_is_an_error(book: Book) -> None:
    begin_again(book)
    book.numbers(30)
    book.numbers(5, node="paris")
    options = {"path": str(book.root), "service": "weather", "startingOffsets": "earliest"}
    reader = WeftStreamReader(StructType(), options)
    offset = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    for path in book.root.rglob("*london*"):
        path.unlink()
    with pytest.raises(Lost, match=r"the journal of node london was removed.* position 30"):
        reader.latestOffset(offset, ReadAllAvailable())
    lenient = WeftStreamReader(StructType(), {**options, "failOnDataLoss": "false"})
    assert lenient.latestOffset(offset, ReadAllAvailable()) == offset


def test_nodes_of_unequal_traffic_are_read_at_one_pace(book: Book) -> None:
    book.numbers(900, node="busy")
    book.numbers(100, node="calm")
    options = {"path": str(book.root), "service": "weather", "startingOffsets": "earliest"}
    reader = WeftStreamReader(StructType(), options)
    offset = reader.initialOffset()
    for batch in range(1, 11):
        offset = reader.latestOffset(offset, ReadMaxRows(100))
        assert offset == {"busy": 90 * batch, "calm": 10 * batch}


def test_a_node_whose_segments_were_all_removed_goes_on(book: Book) -> None:
    begin_again(book)
    book.numbers(30)
    options = {"path": str(book.root), "service": "weather", "startingOffsets": "earliest"}
    reader = WeftStreamReader(StructType(), options)
    offset = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    recover(place_in(book.root))
    for segment in segments_of(book.root, "weather"):
        segment.path.unlink()
    assert reader.latestOffset(offset, ReadAllAvailable()) == offset
    late = WeftStreamReader(StructType(), options)
    start = late.initialOffset()
    assert late.partitions(start, late.latestOffset(start, ReadAllAvailable())) == []
