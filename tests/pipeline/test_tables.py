from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.desk import Said, moment, rows_of, streamed, write_journals

from weft.errors import BadOption, NotKnown
from weft.pipeline.source import Source
from weft.pipeline.tables import Tables, without_codes

SAID = [Said(n, n, "ab"[n % 2], position=n) for n in range(10)]


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    write_journals(tmp_path, SAID)
    write_journals(tmp_path, [each._replace(service="order-desk") for each in SAID[:3]])
    return Tables(Source(path=tmp_path), ["order-desk", "weather"])


def test_services_are_tables_of_their_names(spark: SparkSession, tables: Tables) -> None:
    text = """
        SELECT one.subject, count(*) FROM weather one JOIN `order-desk` USING (sequence)
        GROUP BY one.subject ORDER BY 1
    """
    assert [tuple(row) for row in tables.query(spark, text).collect()] == [("a", 2), ("b", 1)]


def test_a_query_may_have_parameters(spark: SparkSession, tables: Tables) -> None:
    text = "SELECT sequence FROM weather WHERE sequence > :least AND subject = :subject"
    rows = tables.query(spark, text, values={"least": 5, "subject": "b"})
    assert rows_of(rows) == [(7,), (9,)]


def test_fields_of_messages_are_more_columns(spark: SparkSession, tmp_path: Path) -> None:
    write_journals(tmp_path, [Said(0, sent_us=7), Said(1, position=1)])
    tables = Tables(Source(path=tmp_path), ["weather"], "sent timestamp")
    assert rows_of(tables.query(spark, "SELECT sequence, sent FROM weather")) == [
        *((0, 7), (1, None))
    ]


def test_a_wrong_table_is_told_with_those_that_there_are(
    spark: SparkSession, tables: Tables
) -> None:
    with pytest.raises(NotKnown) as raised:
        tables.query(spark, "SELECT * FROM wether")
    assert str(raised.value) == "there is no service 'wether'; did you mean 'weather'?"
    with pytest.raises(NotKnown) as raised:
        tables.query(spark, "SELECT * FROM `the-shop`")
    assert str(raised.value) == "there is no service 'the-shop', only order-desk, weather"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT colour FROM weather", "`colour` cannot be resolved"),
        ("SELEC 1", "Syntax error at or near 'SELEC'"),
    ],
)
def test_a_mistake_is_told_in_a_line(
    spark: SparkSession, tables: Tables, text: str, said: str
) -> None:
    with pytest.raises(BadOption) as raised:
        tables.query(spark, text)
    assert said in str(raised.value)
    assert "SQLSTATE" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_wrong_fields_are_told(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(Source(path=tmp_path), ["weather"], "value dubble")
    with pytest.raises(BadOption, match="the fields 'value dubble'"):
        tables.query(spark, "SELECT * FROM weather")


def test_a_query_may_go_on_as_a_stream(spark: SparkSession, tables: Tables) -> None:
    late = Tables(Source(path=tables.source.path, since=moment(4)), tables.services)
    rows = late.query(spark, "SELECT sequence FROM weather WHERE subject = 'b'", is_stream=True)
    assert rows.isStreaming
    assert streamed(rows) == [(5,), (7,), (9,)]


def test_codes_are_left_out_of_an_error() -> None:
    text = "[SOME_CODE.AND_MORE] It is wrong. SQLSTATE: 42703; line 1 pos 7;\n'Project ['a]\n"
    assert without_codes(text) == "It is wrong. line 1 pos 7"
    ended = "[A_B] Query [id = 1] terminated with exception: [C_D] it is full\n\tat java"
    assert without_codes(ended) == "it is full"
