"""Thousands of meshes that break, and every one that ever failed."""

from pathlib import Path

import pytest

from weft.simulation.faults import FAULTS
from weft.simulation.runs import Totals, run_all, run_safely
from weft.simulation.scenario import ScenarioOptions

SEEDS = 2000
KEPT = Path(__file__).with_name("seeds.txt")


def kept() -> list[tuple[int, ScenarioOptions]]:
    """The seeds of runs that once failed, and what the runs were like."""
    found = []
    for line in KEPT.read_text(encoding="utf-8").splitlines():
        words = dict(word.split("=", 1) for word in line.partition("#")[0].split())
        if words:
            names = words.get("faults", ",".join(FAULTS))
            manner = ScenarioOptions(int(words.get("nodes", 0)), tuple(names.split(",")))
            found.append((int(words["seed"]), manner))
    return found


@pytest.mark.req("MM-25", "RLY-6", "RLY-7")
def test_meshes_that_break_keep_their_promises() -> None:
    totals = Totals()
    failed = []
    for outcome in run_all(range(SEEDS), ScenarioOptions(), jobs=2):
        totals.add(outcome)
        if outcome.verdict.violations:
            failed.append((outcome.seed, outcome.verdict.violations[0]))
    assert failed == [], "weft simulate --seed … --trace shows what happened"
    assert totals.runs == SEEDS
    assert totals.heard > 100 * SEEDS


def test_little_is_lost_when_links_flap() -> None:
    totals = Totals()
    for outcome in run_all(range(60), ScenarioOptions(faults=("flap",)), jobs=2):
        totals.add(outcome)
    assert totals.violations == {}
    assert totals.announced_percent <= 0.2


def test_a_subscriber_that_returns_before_interest_has_travelled_finds_no_holes() -> None:
    totals = Totals()
    for outcome in run_all(range(60), ScenarioOptions(faults=("return",)), jobs=2):
        totals.add(outcome)
    assert totals.violations == {}
    assert totals.heard > 1000 * totals.runs


@pytest.mark.parametrize(("seed", "manner"), kept())
def test_what_once_failed_does_not_any_more(seed: int, manner: ScenarioOptions) -> None:
    assert run_safely(seed, manner).verdict.violations == []
