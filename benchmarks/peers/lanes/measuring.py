"""One measurement: a publisher and its receivers as processes, and a gateway if there is one.

Nobody is pinned: each way has the whole machine, and its processes and threads go where the system
puts them.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.peers.lanes.part import Part, Spenders
from benchmarks.peers.lanes.ways import Way
from benchmarks.peers.rows import Row
from benchmarks.running import WAIT_S, Failed, line_of

_ALONE = "benchmarks.peers.lanes.alone"
# The message that says that it is over goes by the lane like all others.
_LAST = 1

Process = subprocess.Popen[str]


def measure(row: Row, way: Way) -> dict[str, float]:
    """The figures of one load on one way.

    Raises:
        Failed: something was lost, came twice, in another order or by another way, or stalled.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="weft-lane-"))
        at, gateway = stack.enter_context(way.meeting(Path(folder)))
        receivers = int(row.options["receivers"])
        pipes = [_pipe(stack) for _ in range(receivers)]
        ends = [reading for reading, _ in pipes]
        publisher = _started(stack, way, "publish", _part(row, way, at, ends))
        hearing = [
            _started(stack, way, "receive", _part(row, way, at, [writing])) for _, writing in pipes
        ]
        clients = [publisher.pid, *(each.pid for each in hearing)]
        _tell(publisher, msgspec.json.encode(Spenders(clients, gateway)).decode())
        figures: dict[str, float] = _said(publisher)
        facts = []
        for each in hearing:
            _close(each)
            facts.append(_said(each))
    if row.command == "request":
        return figures
    check(figures, facts, way)
    latencies = {name: facts[0][name] for name in ("p50_us", "p99_us") if name in facts[0]}
    return {**figures, **latencies}


def check(figures: dict[str, float], facts: list[dict[str, Any]], way: Way) -> None:
    """Make sure that everybody has heard everything, by the right way.

    Raises:
        Failed: somebody has not.
    """
    published = figures["published"]
    for each in facts:
        if each["count"] != published:
            raise Failed(f"{each['count']} of {published} messages were heard")
        expected = published + _LAST if way.is_lane else 0
        if each.get("by_lane", 0) != expected:
            raise Failed(f"{each['by_lane']} messages went by lanes instead of {expected}")


def _part(row: Row, way: Way, at: str, pipes: list[int]) -> Part:
    options = row.options
    return Part(
        way=way.way,
        case=row.command,
        at=at,
        receivers=int(options["receivers"]),
        size=int(options["size"]),
        seconds=options["seconds"],
        pipes=pipes,
    )


def _pipe(stack: contextlib.ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    stack.callback(os.close, reading)
    stack.callback(os.close, writing)
    return reading, writing


def _started(stack: contextlib.ExitStack, way: Way, role: str, part: Part) -> Process:
    """A process that is there for the others."""
    process = stack.enter_context(_running(way, role, part))
    _said(process)
    return process


@contextlib.contextmanager
def _running(way: Way, role: str, part: Part) -> Iterator[Process]:
    with subprocess.Popen(
        [sys.executable, "-m", _ALONE, way.module, role, msgspec.json.encode(part).decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=part.pipes,
    ) as process:
        try:
            yield process
            process.wait(WAIT_S)
        finally:
            # If all went well it has ended by itself.
            process.kill()


def _said(process: Process) -> Any:
    try:
        return json.loads(line_of(process))
    except Failed as failure:
        # The rest is where in the program it was.
        raise Failed(str(failure).rpartition("\n")[2]) from failure


def _tell(process: Process, words: str) -> None:
    if process.stdin is None:
        raise ValueError("a process that cannot be told anything")
    process.stdin.write(f"{words}\n")
    process.stdin.flush()


def _close(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
