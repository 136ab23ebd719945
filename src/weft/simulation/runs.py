"""Batches of runs in several processes, and their totals."""

import traceback
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from weft.simulation.checker import Verdict
from weft.simulation.process_pool import process_pool
from weft.simulation.scenario import RunOutcome, ScenarioOptions, run

CRASHED = "crashed"

_CHUNK = 8


class Totals(msgspec.Struct):
    """Totals of runs; `violations` are counted by kind."""

    runs: int = 0
    virtual_s: float = 0.0
    published: int = 0
    owed: int = 0
    heard: int = 0
    announced: int = 0
    left_with: int = 0
    gaps: int = 0
    asked: int = 0
    answered: int = 0
    refused: int = 0
    passages: int = 0
    violations: dict[str, int] = {}
    failed: list[int] = []
    converged_s: list[float] = []

    def add(self, outcome: RunOutcome) -> None:
        """Add one more run."""
        verdict = outcome.verdict
        self.runs += 1
        self.virtual_s += outcome.virtual_ns / 1e9
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(verdict, name))
        for violation in verdict.violations:
            self.violations[violation.kind] = self.violations.get(violation.kind, 0) + 1
        if verdict.violations:
            self.failed.append(outcome.seed)
        if verdict.converged_ns >= 0:
            self.converged_s.append(verdict.converged_ns / 1e9)

    @property
    def announced_percent(self) -> float:
        """Percentage of owed messages that were reported as lost."""
        return 100 * self.announced / self.owed if self.owed else 0.0

    def converged_at(self, share: float) -> float:
        """Return the time in seconds within which this share of the runs converged."""
        times = sorted(self.converged_s)
        return times[min(len(times) - 1, int(share * len(times)))] if times else 0.0


_COUNTED = tuple(name for name in Totals.__struct_fields__ if name in Verdict.__struct_fields__)
_COUNTED = tuple(name for name in _COUNTED if name != "violations")


def run_all(seeds: Sequence[int], manner: ScenarioOptions, jobs: int) -> Iterator[RunOutcome]:
    """Run in `jobs` processes; yield results as they are completed."""
    one = partial(run_safely, manner=manner)
    if jobs == 1:
        yield from map(one, seeds)
        return
    with process_pool(jobs) as pool:
        yield from pool.imap_unordered(one, seeds, _CHUNK)


def run_safely(seed: int, manner: ScenarioOptions) -> RunOutcome:
    """Run one seed; a crash of the mesh is a result as well."""
    try:
        return run(seed, manner)
    except Exception:  # any crash is a finding, to be reported with its seed
        verdict = Verdict()
        verdict.find(CRASHED, traceback.format_exc(limit=-3))
        return RunOutcome(seed, verdict, (), manner.nodes, 0)
