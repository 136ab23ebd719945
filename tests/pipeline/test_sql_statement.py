import pytest

from weft.errors import BadOption
from weft.pipeline.sql_statement import check_statement, unknown_tables

SERVICES = ("order-desk", "weather")

# All of these Spark takes; tables named x… are no services.
LEGAL = [
    "SELECT * FROM weather",
    "select w.subject from Weather as w, `order-desk` o where o.sequence = w.sequence;",
    "SELECT 'it''s (', \"a ) b\", r'\\', `odd``(name` FROM weather -- ( and '\n",
    "SELECT 1 /* ( /* ' */ ( */ + 2",
    "SELECT /*+ BROADCAST(w) */ * FROM weather w",
    "WITH hot AS (SELECT * FROM weather), x (a, b) AS (SELECT 1, 2) SELECT * FROM hot JOIN x",
    "SELECT extract(YEAR FROM timestamp), trim(BOTH 'x' FROM subject) FROM weather",
    "SELECT * FROM weather WHERE subject IS NOT DISTINCT FROM reply",
    "SELECT * FROM range(10) AS r, weather",
    "SELECT * FROM VALUES (1), (2) AS x(a)",
    "SELECT * FROM (SELECT 1 AS a) x JOIN LATERAL (SELECT x.a) y",
    "SELECT * FROM weather LATERAL VIEW explode(array(1, 2)) x AS a",
    "SELECT * FROM default.xs JOIN parquet.`/tmp/xs` ON true",
    "SELECT from, to FROM weather",
    "SELECT from xs FROM weather",
    "SELECT w.from FROM weather w ORDER BY join, w.join",
    "FROM weather |> WHERE sequence > 1 |> SELECT subject, sequence",
    "FROM weather SELECT subject, sequence",
    "SELECT * FROM weather TABLESAMPLE (10 ROWS) WINDOW x AS (ORDER BY sequence)",
    "(SELECT 1) UNION (SELECT sequence FROM weather)",
    "SELECT subject FROM weather UNION ALL SELECT subject FROM `order-desk`",
    "SELECT * FROM IDENTIFIER('weather')",
    "SHOW TABLES FROM xs",
    "DESCRIBE weather",
    "EXPLAIN SELECT * FROM weather",
    "SET spark.app.name = don't (",
    "VALUES (1, 2)",
    "TABLE weather",
    "BEGIN SELECT 1; SELECT 2; END",
    "selects: BEGIN SELECT 1; END selects",
    "SELECT * FROM weather WHERE subject = :subject AND sequence > ?",
    "SELECT 1.5, 2e3, .5",
]

REFUSED = [
    ("  -- nothing\n /* here */ ", "the query is empty"),
    ("SELEC * FROM weather", "cannot begin with 'SELEC'; did you mean SELECT?"),
    ("form weather", "cannot begin with 'form'; did you mean FROM?"),
    ("SELECT * FROM weather WHERE subject = 'a", "' at line 1, column 39 has no end"),
    ('SELECT "a\nFROM weather', '" at line 1, column 8 has no end'),
    ("SELECT *\nFROM `weather", "` at line 2, column 6 has no end"),
    ("SELECT 1 /* once", "/* at line 1, column 10 has no end"),
    ("SHOW TABLES /* once", "/* at line 1, column 13 has no end"),
    ("SELECT 1 /*+ once", "/* at line 1, column 10 has no end"),
    ("SELECT count(*\nFROM (weather", "( at line 2, column 6 has no end"),
    ("SELECT count(*)) FROM weather", ") at line 1, column 16 closes nothing"),
    ("SELECT 1; SELECT 2", "one query at a time: there is another at line 1, column 11"),
]


@pytest.mark.parametrize("text", LEGAL)
def test_what_spark_takes_is_taken(text: str) -> None:
    check_statement(text)
    assert unknown_tables(text, SERVICES) == []


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_no_parser_takes_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadOption) as raised:
        check_statement(text)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("SELECT * FROM wether", ["wether"]),
        ("SELECT * FROM weather w JOIN `order-desc` d ON w.sequence = d.sequence", ["order-desc"]),
        ("SELECT * FROM weather, shop AS s, till t, weather", ["shop", "till"]),
        ("WITH a AS (SELECT * FROM wether) SELECT * FROM a", ["wether"]),
        ("SELECT (SELECT max(sequence) FROM shop) FROM weather", ["shop"]),
        ("SELECT 1 FROM weather UNION SELECT 1 FROM shop", ["shop"]),
        ("FROM wether |> JOIN shop ON true", ["wether", "shop"]),
        ("SELECT * FROM weather WHERE subject IN (SELECT subject FROM shop)", ["shop"]),
    ],
)
def test_tables_that_are_no_services_are_found(text: str, unknown: list[str]) -> None:
    check_statement(text)
    assert unknown_tables(text, SERVICES) == unknown


@pytest.mark.parametrize("text", ["SELECT $$ ' ( $$", "SELECT * FROM s3://a--b/('", "'", ")"])
def test_what_is_not_certain_is_left_to_spark(text: str) -> None:
    check_statement(text)
    assert unknown_tables(text, SERVICES) == []
