"""Mistakes that are named without Spark: there is no Java that it could start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipeline.desk import S, Said, write_journals

SQL = "sql"
ODD = "SELECT sequence FROM weather WHERE sequence > :least AND (x"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A journal, jobs with mistakes, and a folder that is not empty."""
    write_journals(tmp_path / "journal", [Said(n, n * S, "a", position=n) for n in range(3)])
    jobs = tmp_path / "pipelines"
    jobs.mkdir()
    (jobs / "odd.sql").write_text(ODD)
    (jobs / "lost.sql").write_text("SELECT * FROM wether WHERE sequence > :least")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "one").touch()
    return tmp_path


def weft(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without Java and settings of Spark."""
    environment = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    environment["JAVA_HOME"] = str(folder / "none")
    return subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "weft.cli", *arguments, "--path", "."],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([SQL, "SELEC * FROM weather"], 2, "did you mean SELECT?"),
        ([SQL, "SELECT 'a FROM weather"], 2, "' at line 1, column 8 has no end"),
        ([SQL, "SELECT * FROM wether"], 1, "no service 'wether'; did you mean 'weather'?"),
        ([SQL, "SELECT 1", "--out", "./full"], 2, "./full is not empty: give a new folder"),
        ([SQL, "SELECT 1", "--out", "a..b"], 2, "bad subject"),
        ([SQL, "SELECT 1", "--stream", "--out", "a.b"], 2, "needs --checkpoint"),
        ([SQL, "SELECT 1", "--stream", "--trigger", "soon"], 2, "--trigger 'soon' is not"),
        (["pipeline", "run", "odd", "--set", "least=1"], 2, "( at line 1, column 58 has no end"),
        (["pipeline", "run", "lost", "--set", "least=1"], 1, "there is no service 'wether'"),
        (["pipeline", "run", "rates", "--service", "wether"], 1, "no service 'wether'"),
        (["pipeline", "run", "rates", "--out", "./full"], 2, "./full is not empty"),
        (["pipeline", "run", "rates", "--stream", "--out", "a.b"], 2, "needs --checkpoint"),
        (["pipeline", "run", "audit", "--stream"], 2, "audit cannot stream"),
        (["pipeline", "run", "audit", "--subject", "a"], 2, "audit judges whole journals"),
        (["pipeline", "run", "replay", "--out", "a.>"], 2, "bad subject"),
    ],
)
def test_a_mistake_is_named_without_spark(
    data: Path, arguments: list[str], code: int, said: str
) -> None:
    done = weft(data, *arguments)
    assert said in done.stderr
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == 1


def test_what_is_not_certain_is_left_to_spark(data: Path) -> None:
    done = weft(data, SQL, "SELECT * FROM weather JOIN default.wether USING (sequence)")
    assert done.returncode != 0
    assert "wether" not in done.stderr


def test_a_cluster_may_have_other_tables(data: Path) -> None:
    text = "SELECT * FROM wether"
    assert "wether" in weft(data, SQL, text).stderr
    done = weft(data, SQL, text, "--master", "spark://127.0.0.1:1")
    assert "no Spark master answers" in done.stderr
