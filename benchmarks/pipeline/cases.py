"""What is asked of a journal, and how each engine answers.

A way of answering prepares, takes the time, and returns the seconds. A case that is added to CASES
is measured and shown like the others.
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from benchmarks.pipeline.book import NODE, SERVICE
from benchmarks.pipeline.jobs import IN_DUCKDB, MEASURED, by_duckdb, by_weft
from benchmarks.pipeline.stage import Stage
from benchmarks.running import Failed
from weft.journal.parquet.seal import Sealed, seal_all
from weft.spark.columns import STANDARD

Way = Callable[[Stage], float]

_STANDARD = [column.split()[0] for column in STANDARD.split(",")]
_TYPED = "city string, temp double, count bigint"


@dataclass(frozen=True, slots=True)
class Case:
    """One question; an engine that is not among the ways has no answer."""

    name: str
    title: str
    ways: dict[str, Way]


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _through(frame: DataFrame) -> float:
    """Every column of every row, taken and forgotten."""
    return _timed(lambda: frame.write.format("noop").mode("overwrite").save())


def _counted(stage: Stage, frame: DataFrame) -> float:
    """How many messages each subject has; they must be all.

    Raises:
        Failed: they are not.
    """
    began = time.monotonic()
    counts = frame.groupBy("subject").count().collect()
    seconds = time.monotonic() - began
    _check(stage, sum(row["count"] for row in counts))
    return seconds


def _counted_by_duckdb(stage: Stage) -> float:
    files = f"{stage.sealed}/**/*.parquet"
    began = time.monotonic()
    stage.duck.execute(
        "select subject, count(*) from read_parquet(?) group by subject", parameters=[files]
    )
    counts = stage.duck.fetchall()
    seconds = time.monotonic() - began
    _check(stage, sum(count for _, count in counts))
    return seconds


def _sealed(stage: Stage) -> float:
    root = stage.folder / "sealing"
    shutil.copytree(stage.full, root)
    try:
        began = time.monotonic()
        made = list(seal_all(root, SERVICE, NODE))
        seconds = time.monotonic() - began
    finally:
        shutil.rmtree(root)
    _check(stage, sum(each.messages for each in made if isinstance(each, Sealed)))
    return seconds


def _job(name: str) -> Case:
    ways: dict[str, Way] = {"weft": lambda stage: by_weft(stage, name)}
    if name in IN_DUCKDB:
        ways["duckdb"] = lambda stage: by_duckdb(stage, name)
    return Case(name, f"the job {name}, over what is sealed", ways)


def _check(stage: Stage, found: int) -> None:
    if found != stage.rows:
        raise Failed(f"{found:,} messages of {stage.rows:,} were found")


CASES = (
    Case(
        "columns",
        "sealed, all eleven columns",
        {
            "weft": lambda stage: _through(stage.source(stage.sealed)),
            "parquet": lambda stage: _through(stage.parquet().select(*_STANDARD)),
        },
    ),
    Case(
        "subjects",
        "sealed, messages of each subject counted",
        {
            "weft": lambda stage: _counted(stage, stage.source(stage.sealed, "subject string")),
            "parquet": lambda stage: _counted(stage, stage.parquet()),
            "duckdb": _counted_by_duckdb,
        },
    ),
    Case(
        "typed",
        "sealed, three of six fields as columns; Parquet: the bodies as they are",
        {
            "weft": lambda stage: _through(stage.source(stage.sealed, _TYPED)),
            "parquet": lambda stage: _through(stage.parquet().select("payload", "flags")),
        },
    ),
    Case(
        "open",
        "open, all eleven columns",
        {"weft": lambda stage: _through(stage.source(stage.open))},
    ),
    Case(
        "open-typed",
        "open, three of six fields as columns",
        {"weft": lambda stage: _through(stage.source(stage.open, _TYPED))},
    ),
    Case("sealing", "full segments sealed, read again and synced", {"weft": _sealed}),
    *(_job(name) for name in MEASURED),
)
