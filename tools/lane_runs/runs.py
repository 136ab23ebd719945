"""Many runs, one after the other or in several processes, and what came of all of them."""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from tools.lane_runs.run import RELAYED, Result, Run

from weft.client.lanes import lane


@dataclass
class Sums:
    """The numbers of all runs."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    # What is wrong, by seed.
    wrong: dict[int, list[str]] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Count one more."""
        verdict = result.verdict
        self.counts += Counter(
            {
                "runs": 1,
                "published": result.published,
                "delivered": verdict.delivered,
                "by lane": verdict.by_lane,
                "promotions": result.promotions,
                "demotions": result.demotions,
                "faults": result.faults.total(),
                "gaps announced": verdict.gaps,
                "announced lost": verdict.announced,
                "overtaken after a reconnect": verdict.overtaken,
                "silently lost": len(verdict.lost),
                "doubled": len(verdict.doubled),
                "misordered": len(verdict.misordered),
                "otherwise wrong": len(result.failures),
            }
        )
        self.faults += result.faults
        self.requests += result.requests
        if not result.is_right:
            self.wrong[result.seed] = result.wrong()

    def lines(self) -> list[str]:
        """A table for people."""
        names = [
            *("runs", "published", "delivered", "by lane", "promotions", "demotions", "faults"),
            *("gaps announced", "announced lost", "overtaken after a reconnect"),
            *("silently lost", "doubled", "misordered", "otherwise wrong"),
        ]
        table = [f"{name:32}{self.counts[name]:>14,}" for name in names]
        for title, counted in (("faults", self.faults), ("requests", self.requests)):
            rows = [f"  {name:30}{counted[name]:>14,}" for name in sorted(counted)]
            table += [f"{title}:", *rows] if rows else []
        return table


def results(seeds: Iterable[int], processes: int = 1) -> Iterator[Result]:
    """What comes of each seed, in any order."""
    if processes == 1:
        yield from map(result_of, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(result_of, seeds, chunksize=4)


def summed(
    seeds: Iterable[int], processes: int = 1, tell: Callable[[Result], None] | None = None
) -> Sums:
    """What comes of all seeds; `tell` hears of each."""
    sums = Sums()
    for result in results(seeds, processes):
        sums.add(result)
        if tell is not None:
            tell(result)
    return sums


@contextmanager
def joining(kind: type) -> Iterator[None]:
    """Have receivers join both ways by something else, to see whether it would be found out."""
    with patch.object(lane, "In", kind):
        yield


def result_of(seed: int, *, is_traced: bool = False) -> Result:
    """What comes of a seed.

    Some networks are too slow for what is said on them: whoever gets no answer in time although
    nothing broke must get none without lanes either.
    """
    result = Run(seed, is_traced=is_traced).result()
    if result.is_late and not Run(seed, settings=RELAYED).result().is_late:
        result.failures.append("without a fault, requests end with TimedOut because of lanes")
    return result
