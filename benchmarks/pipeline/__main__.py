"""Measures a journal as Spark and DuckDB read it: `python -m benchmarks.pipeline [CASE…]`.

All cases of all engines are measured in turns, in one run and one session of Spark. The first
rounds warm everything up and do not count.
"""

import argparse
import contextlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.peers.report import machine
from benchmarks.peers.spreads import spread_of
from benchmarks.peers.table import shown
from benchmarks.pipeline.cases import CASES, Case
from benchmarks.pipeline.stage import Stage, staged

ENGINES = {"weft": "weft source", "parquet": "spark.read.parquet", "duckdb": "duckdb"}
ROWS = 1_000_000
ROUNDS = 5
WARM_ROUNDS = 3

# By case and engine: the seconds of each round.
Seconds = dict[str, dict[str, list[float]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for and show it."""
    options = _arguments(arguments)
    facts = machine() | _versions()
    began = time.monotonic()
    with _progress() as progress:
        writing = progress.add_task("writing", total=2 * options.rows)
        with staged(
            options.rows, lambda done: progress.update(writing, completed=done, refresh=True)
        ) as stage:
            found = run(stage, options.cases, options.rounds, progress)
    report = {
        "machine": facts,
        "rows": options.rows,
        "rounds": options.rounds,
        "seconds": round(time.monotonic() - began, 1),
        "cases": [summary(case, found[case.name], options.rows) for case in options.cases],
    }
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    print("\n".join(lines(report)))
    return 0


def run(stage: Stage, cases: list[Case], rounds: int, progress: Progress) -> Seconds:
    """The seconds that each way of each case took, round by round; another engine begins each."""
    found: Seconds = {case.name: {engine: [] for engine in case.ways} for case in cases}
    total = (WARM_ROUNDS + rounds) * sum(len(case.ways) for case in cases)
    task = progress.add_task("", total=total)
    for number in range(WARM_ROUNDS + rounds):
        for case in cases:
            engines = list(case.ways)
            first = number % len(engines)
            for engine in engines[first:] + engines[:first]:
                progress.update(task, description=f"{case.name}, {engine}", refresh=True)
                seconds = case.ways[engine](stage)
                if number >= WARM_ROUNDS:
                    found[case.name][engine].append(seconds)
                progress.advance(task)
    return found


def summary(case: Case, seconds: dict[str, list[float]], rows: int) -> dict[str, Any]:
    """What is told of a case."""
    rates = {engine: [rows / each for each in found] for engine, found in seconds.items()}
    ratio = None
    if {"weft", "parquet"} <= rates.keys():
        pairs = zip(rates["weft"], rates["parquet"], strict=True)
        ratio = spread_of([ours / theirs for ours, theirs in pairs]).median
    return {
        "name": case.name,
        "title": case.title,
        "seconds": seconds,
        "per_s": {engine: _spread(found) for engine, found in rates.items()},
        "ratio": ratio,
    }


def lines(report: dict[str, Any]) -> Iterator[str]:
    """The figures as a table for people."""
    yield f"{report['rows']:,} messages; how many a second: the median, and the middle half"
    yield f"  {'':<12}" + "".join(f"{title:>26}" for title in ENGINES.values()) + f"{'ratio':>8}"
    for case in report["cases"]:
        cells = [_cell(case["per_s"].get(engine)) for engine in ENGINES]
        ratio = "" if case["ratio"] is None else f"{case['ratio']:.2f}×"
        yield f"  {case['name']:<12}" + "".join(f"{cell:>26}" for cell in cells) + f"{ratio:>8}"
    yield ""
    yield from (f"{case['name']}: {case['title']}" for case in report["cases"])
    yield f"{report['rounds']} rounds, all in turns, after {WARM_ROUNDS} to warm up"
    yield "a ratio is weft's rate by that of spark.read.parquet, the median of the rounds' own"
    facts = report["machine"]
    yield f"{facts['processor']}, {facts['cores']} cores, load before {facts['load_before']}"
    yield f"pyspark {facts['pyspark']}, pyarrow {facts['pyarrow']}, duckdb {facts['duckdb']}"


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    known = {case.name: case for case in CASES}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(known)}")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"messages ({ROWS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often ({ROUNDS})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything in a file")
    options = parser.parse_args(arguments)
    if options.rows < 1 or options.rounds < 1:
        parser.error("rows and rounds are at least 1")
    if unknown := [name for name in options.cases if name not in known]:
        parser.error(f"no case {unknown[0]!r}; there are {', '.join(known)}")
    options.cases = [known[name] for name in options.cases or known]
    return options


def _spread(values: list[float]) -> dict[str, float]:
    found = spread_of(values)
    return {"median": found.median, "low": found.low, "high": found.high}


def _cell(spread: dict[str, float] | None) -> str:
    if spread is None:
        return "-"
    median, low, high = (shown(spread[each]) for each in ("median", "low", "high"))
    return f"{median} ({low} … {high})"


@contextlib.contextmanager
def _progress() -> Iterator[Progress]:
    # Drawn between measurements only: drawing takes a core's time.
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        auto_refresh=False,
    ) as progress:
        yield progress


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("pyspark", "pyarrow", "duckdb")}


if __name__ == "__main__":
    sys.exit(main())
