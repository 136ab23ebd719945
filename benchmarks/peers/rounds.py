"""A whole run: rounds of rows of peers, in turns, so that what changes on the machine hits all."""

import sys
from collections.abc import Callable, Iterator
from subprocess import SubprocessError
from typing import TypeVar

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.peers import report as reports
from benchmarks.peers.report import Described, Measurement, Report
from benchmarks.peers.rows import Row
from benchmarks.peers.spreads import all_spreads

Peer = TypeVar("Peer", bound=Described)
Measure = Callable[[Row, Peer], dict[str, float]]


def plan(rows: list[Row], peers: list[Peer], rounds: int) -> Iterator[tuple[int, Row, Peer]]:
    """Every measurement that can be made, in order; another peer begins each round."""
    for number in range(rounds):
        first = number % len(peers)
        for row in rows:
            for peer in peers[first:] + peers[:first]:
                if peer.name not in row.left_out:
                    yield number, row, peer


def run(rows: list[Row], peers: list[Peer], rounds: int, how: Measure[Peer]) -> Report:
    """Measure everything and tell of the progress; what fails is reported and the run goes on."""
    measurements: list[Measurement] = []
    facts = [peer.facts() for peer in peers]
    machine = reports.machine()
    # Drawn between measurements only: drawing takes a core's time.
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        auto_refresh=False,
    ) as progress:
        planned = list(plan(rows, peers, rounds))
        task = progress.add_task("", total=len(planned))
        for number, row, peer in planned:
            progress.update(task, description=f"{row.name}, {peer.name}", refresh=True)
            measurements.append(_measured(number, row, peer, how))
            progress.advance(task)
    found = Report(machine, rounds, facts, list(map(reports.facts_of, rows)), measurements)
    return msgspec.structs.replace(found, spreads=all_spreads(found))


def _measured(number: int, row: Row, peer: Peer, how: Measure[Peer]) -> Measurement:
    try:
        return Measurement(number, row.name, peer.name, how(row, peer))
    except (RuntimeError, OSError, SubprocessError) as error:
        return Measurement(number, row.name, peer.name, {}, str(error) or type(error).__name__)
