"""The command line of a comparison: what to measure, how often, and where to keep it."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from benchmarks.peers import chart, report, table
from benchmarks.peers.report import Described
from benchmarks.peers.rounds import Measure, run
from benchmarks.peers.rows import Row

ROUNDS = 5
CORES = 2

Chosen = TypeVar("Chosen")
Peer = TypeVar("Peer", bound=Described)


@dataclass(frozen=True, slots=True)
class Comparison(Generic[Peer]):
    """Rows, peers, and how one is measured on the other; `reference` is who we are held against."""

    program: str
    description: str
    rows: Mapping[str, Row]
    peers: Mapping[str, Peer]
    measure: Measure[Peer]
    reference: str
    # Who runs where, if not as usual.
    cores: str = ""


def main(comparison: Comparison[Peer], arguments: Sequence[str] | None = None) -> int:
    """Measure, or read what was measured, and show it; 1 if nothing at all could be measured."""
    options = read_arguments(comparison, arguments)
    if options.list:
        print("\n".join(f"{row.name:<18}{row.title}" for row in comparison.rows.values()))
        return 0
    if options.source is not None:
        found = report.read(options.source)
    else:
        found = run(options.rows, options.peers, options.rounds, comparison.measure)
        found = report.held_against(found, comparison.reference)
        if comparison.cores:
            found = report.placed(found, comparison.cores)
    if options.json is not None:
        report.write(found, options.json)
    if options.chart is not None:
        options.chart.parent.mkdir(parents=True, exist_ok=True)
        options.chart.write_text(chart.svg(found))
    print("\n".join(table.lines(found)))
    return 0 if any(not each.failure for each in found.measurements) else 1


def read_arguments(
    comparison: Comparison[Peer], arguments: Sequence[str] | None
) -> argparse.Namespace:
    """The command line, with rows and peers looked up; ends the program if it makes no sense."""
    rows, peers = comparison.rows, comparison.peers
    parser = argparse.ArgumentParser(prog=comparison.program, description=comparison.description)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="what to measure; all if none")
    parser.add_argument("--list", action="store_true", help="list the rows and end")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often ({ROUNDS})")
    parser.add_argument("--peers", default=",".join(peers), help=f"of {','.join(peers)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything in a file")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw an SVG")
    parser.add_argument(
        "--from",
        type=Path,
        metavar="FILE",
        dest="source",
        help="show what a file has kept instead of measuring",
    )
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"{options.rounds} rounds are too few; at least 1")
    options.rows = _choose(parser, "row", rows, options.rows or list(rows))
    options.peers = _choose(parser, "peer", peers, options.peers.split(","))
    if options.source is None and not options.list:
        _check_machine(parser, options)
    return options


def _choose(
    parser: argparse.ArgumentParser, kind: str, known: Mapping[str, Chosen], names: list[str]
) -> list[Chosen]:
    for name in names:
        if name not in known:
            parser.error(f"no {kind} {name!r}; there are {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


def _check_machine(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    missing = [peer.name for peer in options.peers if not peer.is_installed]
    if missing:
        parser.error(f"{', '.join(missing)} not installed; 'make bench-peers' does that")
    if not set(range(CORES)) <= os.sched_getaffinity(0):
        parser.error(f"{CORES} cores are needed: one for the broker, one for the load")
