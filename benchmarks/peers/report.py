"""What a run found, as it is kept in a file: facts, every raw figure, and their middles."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Protocol

import msgspec

from benchmarks.peers.rows import Row


class Spread(msgspec.Struct, frozen=True):
    """The middle of several figures, and where the middle half of them lies."""

    median: float
    low: float
    high: float


class Measurement(msgspec.Struct, frozen=True):
    """One load on one broker in one round: its figures, or why there are none."""

    round: int
    row: str
    peer: str
    figures: dict[str, float]
    failure: str = ""


class PeerFacts(msgspec.Struct, frozen=True):
    """A broker as it was measured."""

    name: str
    title: str
    version: str
    settings: str
    command: list[str]
    config: str


class Described(Protocol):
    """A peer that can be measured here, and described."""

    @property
    def name(self) -> str:
        """A word for it."""

    @property
    def is_installed(self) -> bool:
        """Whether it can be started here."""

    def facts(self) -> PeerFacts:
        """What a reader of the report is told about it."""


class RowFacts(msgspec.Struct, frozen=True):
    """A load as it was measured."""

    name: str
    title: str
    options: dict[str, int | float]
    metrics: list[str]
    charted: str
    windows: dict[str, int]


class Report(msgspec.Struct, frozen=True):
    """One run."""

    machine: dict[str, str]
    rounds: int
    peers: list[PeerFacts]
    rows: list[RowFacts]
    measurements: list[Measurement] = []
    # Who we are held against.
    reference: str = ""
    # Who runs where.
    cores: str = "A broker has one core, the load on it another."
    # By row, peer and metric; for readers of the file only.
    spreads: dict[str, dict[str, dict[str, Spread]]] = {}


def facts_of(row: Row) -> RowFacts:
    """A row for the report."""
    return RowFacts(row.name, row.title, row.options, list(row.metrics), row.charted, row.windows)


def held_against(report: Report, reference: str) -> Report:
    """The report that says who we are held against."""
    return msgspec.structs.replace(report, reference=reference)


def placed(report: Report, cores: str) -> Report:
    """The report that says who ran where."""
    return msgspec.structs.replace(report, cores=cores)


def machine() -> dict[str, str]:
    """Where it was measured."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "kernel": platform.release(),
        "system": _line_of(["sh", "-c", ". /etc/os-release && echo $PRETTY_NAME"]),
        "python": platform.python_version(),
        "gcc": _line_of(["gcc", "-dumpfullversion"]),
        "commit": _line_of(["git", "rev-parse", "--short", "HEAD"]),
        "load_before": " ".join(f"{value:.2f}" for value in os.getloadavg()),
    }


def read(path: Path) -> Report:
    """A report that was kept."""
    return msgspec.json.decode(path.read_bytes(), type=Report)


def write(report: Report, path: Path) -> None:
    """Keep a report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _line_of(command: list[str]) -> str:
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return said.stdout.strip()
