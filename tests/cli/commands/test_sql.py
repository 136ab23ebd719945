import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.desk import S, Said, write_journals

RunHere = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def query(run_here: RunHere, tmp_path: Path, spark: SparkSession) -> RunHere:
    """Ask about two services: `query("SELECT 1", "--json")`."""
    assert spark.version
    said = [Said(n, n * S, "ab"[n % 2], position=n, sent_us=0) for n in range(10)]
    write_journals(tmp_path / "journal", said)
    desk = [each._replace(service="order-desk") for each in said[:4]]
    write_journals(tmp_path / "journal", desk)
    return lambda text, *options: run_here("sql", text, "--path", str(tmp_path), *options)


def test_a_query_is_answered_with_a_table_or_json(query: RunHere) -> None:
    text = "SELECT subject, count(*) AS n FROM weather GROUP BY subject ORDER BY subject"
    shown = query(text)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert [line.split() for line in shown.stdout.splitlines()] == [
        *(["sql"], ["subject", "n"], ["a", "5"], ["b", "5"])
    ]
    some = query(
        "SELECT sequence, sent FROM `order-desk` WHERE sequence = 2",
        *("--json", "--fields", "sent timestamp", "--since", "2023-11-14T22:14:01Z"),
    )
    (row,) = some.stdout.splitlines()
    assert json.loads(row) == {"sequence": 2, "sent": "2023-11-14T22:14:00Z"}


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("SELECT * FROM wether", 1, "no service 'wether'; did you mean 'weather'?"),
        ("SELECT * FROM shop", 1, "no service 'shop', only order-desk, weather"),
        ("SELECT colour FROM weather", 2, "`colour` cannot be resolved"),
        (" ", 2, "the query is empty"),
    ],
)
def test_a_mistake_is_named(query: RunHere, text: str, code: int, said: str) -> None:
    done = query(text)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_fields_of_another_type_are_null(query: RunHere) -> None:
    done = query("SELECT sent FROM weather", "--fields", "sent bigint")
    assert (done.returncode, done.stdout.split()) == (0, ["sql", "sent"])


def test_a_query_goes_on_as_a_stream(query: RunHere, tmp_path: Path) -> None:
    asked = ("--stream", "--trigger", "now", "--since", "2023-11-14T22:14:07Z")
    text = "SELECT sequence FROM weather"
    shown = query(text, *asked, "--json")
    assert [json.loads(line)["sequence"] for line in shown.stdout.splitlines()] == [7, 8, 9]
    out = tmp_path / "out"
    done = query(text, *asked, "--out", f"{out}/", "--checkpoint", str(tmp_path / "kept"))
    assert done.returncode == 0, done.stderr
    assert sorted(pq.read_table(out)["sequence"].to_pylist()) == [7, 8, 9]
