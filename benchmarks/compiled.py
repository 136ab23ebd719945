"""How much does compiling the core gain? Compiled against interpreted, interleaved in one run.

Each round starts a process of each kind in turn; the figure of a case is the median over the rounds
of the CPU time an operation took.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.cases import CASES

ROUNDS = 5
# How often a compiled case must be faster; the turns are measured for their ns alone.
GOALS = {
    "read_a_frame": 8,
    "decode_a_frame": 8,
    "route_to_10_outboxes": 8,
    "encode_6_fields": 3,
    "decode_6_fields": 3,
}
MEASURED_S = 0.1

Figures = dict[str, float]


def run(rounds: int = ROUNDS) -> dict[str, dict[str, Any]]:
    """Measure every case both ways; returns figures by case, in ns an operation."""
    compiled: list[Figures] = []
    interpreted: list[Figures] = []
    for number in range(rounds):
        _progress(f"round {number + 1} of {rounds}")
        compiled.append(_measure_in_process(pure="0"))
        interpreted.append(_measure_in_process(pure="1"))
    _progress("")
    return {name: _summary(name, compiled, interpreted) for name in CASES}


def lines(figures: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The figures as a table for people."""
    yield "compiled against interpreted, ns of CPU an operation (median, and range)"
    yield f"  {'':<22}{'compiled':>10}{'range':>18}{'interpreted':>14}{'ratio':>8}   goal"
    for name, figure in figures.items():
        low, high = figure["compiled_range_ns"]
        goal = "" if figure["goal"] is None else f"≥ {figure['goal']}"
        yield (
            f"  {name:<22}{figure['compiled_ns']:>10.1f}{f'{low:.1f} … {high:.1f}':>18}"
            f"{figure['interpreted_ns']:>14.0f}{figure['ratio']:>8.1f}   {goal}"
        )


def measure() -> Figures:
    """The ns of CPU that an operation of each case takes in this process."""
    return {name: _nanoseconds(*prepare()) for name, prepare in CASES.items()}


def _nanoseconds(work: Callable[[], object], operations: int) -> float:
    work()
    started = time.process_time()
    calls = 0
    while time.process_time() - started < MEASURED_S:
        work()
        calls += 1
    return (time.process_time() - started) * 1e9 / (calls * operations)


def _measure_in_process(pure: str) -> Figures:
    program = "import json, benchmarks.compiled as c; print(json.dumps(c.measure()))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "WEFT_PURE": pure},
        stdout=subprocess.PIPE,
        check=True,
    )
    figures: Figures = json.loads(done.stdout)
    return figures


def _summary(name: str, compiled: list[Figures], interpreted: list[Figures]) -> dict[str, Any]:
    ours = [figures[name] for figures in compiled]
    theirs = [figures[name] for figures in interpreted]
    return {
        "compiled_ns": statistics.median(ours),
        "compiled_range_ns": [min(ours), max(ours)],
        "interpreted_ns": statistics.median(theirs),
        "ratio": statistics.median(theirs) / statistics.median(ours),
        "goal": GOALS.get(name),
    }


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
