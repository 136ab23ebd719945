import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.desk import S, Said, numbered, write_journals

from weft.journal.parquet.seal import seal_all
from weft.journal.segment.file_names import segments_of

RunHere = Callable[..., subprocess.CompletedProcess[str]]

SAID = numbered(
    [
        *[Said(n, n * S, "sensors.a") for n in range(20)],
        *[Said(n, n * S, "sensors.a").heard_at("paris") for n in range(20) if n != 7],
    ]
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data of two gateways; Paris has not heard one message. It is the current folder, too."""
    write_journals(tmp_path / "journal", SAID)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(run_here: RunHere, data: Path, spark: SparkSession) -> RunHere:
    """Run a job over the data: `run("rates", "--json")`."""
    assert (data / "journal").is_dir()
    assert spark.version

    def run_job(name: str, *options: str) -> subprocess.CompletedProcess[str]:
        given = ("--path", ".", "--service", "weather", *options)
        return run_here("pipeline", "run", name, *given)

    return run_job


def objects(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_jobs_are_listed_with_their_parameters(run_here: RunHere, data: Path) -> None:
    own = data / "pipelines"
    own.mkdir()
    (own / "loud.py").write_text("def loud(messages):\n    '''Loud ones.'''\n    return messages\n")
    (own / "warm.sql").write_text("-- Warm ones.\nSELECT * FROM weather WHERE x > :least")
    (own / "wrong.py").write_text("x = 1")
    done = run_here("pipeline", "list")
    lines = {line.split()[0]: line for line in done.stdout.splitlines()[2:]}
    assert "window_s=10.0 watermark_s=10.0" in lines["rates"]
    assert "Loud ones." in lines["loud"]
    assert "least=" in lines["warm"]
    assert "pipelines/wrong.py has no function wrong" in done.stderr
    told = [json.loads(line) for line in run_here("pipeline", "list", "--json").stdout.splitlines()]
    assert told[0]["name"] == "rates"
    assert {each["name"]: each["can_stream"] for each in told}["audit"] is False
    other = run_here("pipeline", "list", "--folder", str(data / "none"))
    assert "loud" not in other.stdout


@pytest.mark.req("SPK-4")
def test_a_result_is_a_table_or_json(run: RunHere) -> None:
    shown = run("rates", "--until", "2023-11-14T22:14:10Z")
    assert shown.returncode == 0
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert lines[0] == ["rates"]
    assert lines[2] == [
        *("2023-11-14T22:14:00Z", "2023-11-14T22:14:10Z", "weather", "sensors.a", "7", "3"),
        *("10", "40"),
    ]
    assert len(lines) == 3
    told = objects(
        run("rates", "--json", "--set", "window_s=60", "--since", "2023-11-14T22:14:05Z")
    )
    assert [(each["messages"], each["bytes"]) for each in told] == [(15, 60)]


@pytest.mark.req("SPK-4")
def test_an_audit_ends_with_1_if_it_finds_something(run: RunHere, data: Path) -> None:
    done = run("audit", "--out", "./found")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the result is in ./found" in done.stderr
    (fault,) = pq.read_table(data / "found").to_pylist()
    assert (fault["kind"], fault["node"], fault["first"]) == ("lost", "paris", 7)


def test_an_audit_of_a_clean_mesh_ends_with_0(run: RunHere, data: Path) -> None:
    clean = [each._replace(service="clean") for each in SAID if each.node == "london"]
    write_journals(data / "journal", clean)
    done = run("audit", "--service", "clean")
    assert done.returncode == 0
    assert "audit found no faults" in done.stderr


def test_a_picture_is_drawn(run: RunHere, data: Path) -> None:
    done = run("matrix", "--plot", "matrix.html")
    assert (done.returncode, done.stdout) == (0, "")
    assert "the plot is in matrix.html" in done.stderr
    assert "paris" in (data / "matrix.html").read_text()


def test_small_files_are_merged(run: RunHere, data: Path) -> None:
    root = data / "journal"
    write_journals(root, [Said(n, n * S, position=n) for n in range(20, 30)])
    list(seal_all(root, "weather", "london"))
    (made,) = objects(run("compact", "--json"))
    assert (made["merged"], made["messages"]) == (2, 30)
    states = [
        (each.state, each.first, each.last) for each in segments_of(root, "weather", "london")
    ]
    assert states == [("sealed", 0, 29)]


@pytest.mark.req("SPK-4")
def test_a_stream_shows_what_comes_or_keeps_how_far_it_is(run: RunHere, data: Path) -> None:
    asked = ("--stream", "--trigger", "now", "--since", "2023-11-14T22:14:00Z")
    shown = run("rates", *asked, "--json", "--set", "window_s=5", "--set", "watermark_s=1")
    told = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [each["messages"] for each in told] == [5, 5, 5]
    kept = ("--out", "./out", "--checkpoint", "./checkpoint")
    windows = ("--set", "window_s=5", "--set", "watermark_s=1")
    for _ in range(2):
        done = run("rates", *asked, *windows, *kept)
        assert done.returncode == 0, done.stderr
        assert "the result is in ./out" in done.stderr
    assert pq.read_table(data / "out")["messages"].to_pylist() == [5, 5, 5]


def test_your_own_jobs_run_alike(run: RunHere, data: Path) -> None:
    own = data / "mine"
    own.mkdir()
    (own / "few.py").write_text(
        "def few(messages, *, count: int = 3):\n    return messages.limit(count).select('node')\n"
    )
    (own / "odd.sql").write_text("SELECT sequence FROM weather WHERE sequence > :least LIMIT 1")
    folder = ("--folder", str(own), "--json")
    assert len(objects(run("few", *folder, "--set", "count=2"))) == 2
    (odd,) = objects(run("odd", *folder, "--set", "least=18"))
    assert odd == {"sequence": 19}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["rate"], 1, "not known: there is no job 'rate'; did you mean 'rates'?"),
        (["zzz"], 1, "there is no job 'zzz'; only rates, hot_routes, matrix"),
        (["rates", "--set", "windows=1"], 2, "rates has no parameter 'windows'"),
        (["rates", "--set", "window_s"], 2, "--set 'window_s' is not of the form name=value"),
        (["rates", "--set", "window_s=0"], 2, "window_s is 0.0; it must be more than 0"),
        (["rates", "--service", "wether"], 1, "no service 'wether' at ., only weather"),
        (["rates", "--subject", "a..b"], 2, "bad subject"),
        (["rates", "--since", "soon"], 2, "since 'soon' is not"),
        (["rates", "--gateways", "a:1"], 2, "give --path or --gateways, not both"),
        (["audit", "--stream"], 2, "audit cannot stream: it needs the whole table"),
        (["audit", "--subject", "a"], 2, "audit judges whole journals"),
        (["sessions", "--plot", "a.png"], 2, "sessions has no picture"),
        (["rates", "--plot", "a.png", "--stream"], 2, "exclude each other"),
        (["rates", "--stream", "--out", "a.b"], 2, "needs --checkpoint"),
        (["replay", "--out", "a.>"], 2, "bad subject"),
    ],
)
def test_a_mistake_is_named(run: RunHere, arguments: list[str], code: int, said: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_journal_with_a_hole_is_told(run: RunHere, data: Path) -> None:
    holed = [each._replace(service="holed") for each in SAID if each.position != 5]
    write_journals(data / "journal", holed)
    done = run("rates", "--service", "holed")
    assert done.returncode == 1
    assert "job failed: positions 5 … 5 of node" in done.stderr


def test_without_its_packages_it_says_what_to_install(
    run_here: RunHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    for arguments in (("pipeline", "list"), ("pipeline", "run", "rates"), ("sql", "SELECT 1")):
        done = run_here(*arguments)
        assert done.returncode == 2
        assert 'this needs pyspark: pip install "weft-mesh[spark]"' in done.stderr
