from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.desk import Said, rows_of, table_of, write_journals

from weft.errors import BadOption, BadSubject
from weft.pipeline.jobs.hot_routes import hot_routes
from weft.pipeline.jobs.replay import replay
from weft.pipeline.reading import Source
from weft.pipeline.writing import Flow, Folder, as_messages, for_spark

SAID = [Said(n, n, position=n) for n in range(20)]


def test_rows_to_one_subject_have_their_columns_as_fields(spark: SparkSession) -> None:
    hot = hot_routes(table_of(spark, SAID), messages_s=20.0)
    rows = as_messages(hot, "_WEFT.PIPELINE.hot_routes")
    assert rows.columns == [
        *("start", "end", "service", "node", "subject", "origin", "publisher"),
        *("messages_s", "bytes_s", "ttl_s"),
    ]
    (row,) = rows.collect()
    assert row["subject"] == "sensors.a"
    bodies = as_messages(table_of(spark, SAID).select("subject", "reply", "payload"), "a.b")
    assert bodies.columns == ["subject", "of_reply", "of_payload"]


def test_messages_go_to_subjects_of_their_own(spark: SparkSession) -> None:
    rows = as_messages(replay(table_of(spark, SAID[:1]), prefix="again"), None)
    assert rows_of(rows) == [("again.sensors.a", "", b"four", 8)]


def test_rows_go_to_what_can_be_a_subject(spark: SparkSession) -> None:
    with pytest.raises(BadSubject):
        as_messages(table_of(spark, []), "a.>")


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
    flow = Flow(None, "append", str(tmp_path / "checkpoint"))
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
