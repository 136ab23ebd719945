"""Races for the names of channels, and that what is wrong with one is found."""

import pytest

from weft.errors import NoMajority
from weft.simulation.channel_races import run as races
from weft.simulation.channel_races.history import (
    DISAGREED,
    LEAK,
    TWO_CERTAIN,
    TWO_OWNERS,
    Opened,
    RaceHistory,
    RaceTotals,
    judge,
)
from weft.simulation.channel_races.run import CRASHED, Race, run_race, run_races

SEEDS = 100


@pytest.mark.req("RLY-13", "RLY-14", "RLY-15")
def test_races_for_a_name_leave_no_two_owners_and_leak_nothing() -> None:
    totals = RaceTotals()
    told = []
    for outcome in run_races(range(SEEDS), jobs=2):
        totals.add(outcome)
        told += outcome.told
    assert told == [], "weft simulate --channels --seed … --trace shows what happened"
    assert totals.runs == SEEDS
    assert totals.opened > SEEDS
    assert totals.deliveries > 1000 * SEEDS
    # Everything that can come of an opening does, and losers are told.
    assert totals.refusals.keys() == {"ChannelExists", "ChannelContested", "NoMajority"}
    assert totals.lost > 0


@pytest.mark.req("RLY-14")
def test_the_same_races_leak_if_messages_carry_the_name_instead_of_the_id() -> None:
    # In most runs nobody is apart for long enough: these are some of those where somebody is.
    found = [Race(seed, is_by_name=True).run().violations for seed in (53, 89, 129)]
    assert any(LEAK in each for each in found)
    assert [Race(seed).run().violations for seed in (53, 89, 129)] == [{}, {}, {}]


def test_the_same_seed_does_the_same() -> None:
    assert Race(3).run() == Race(3).run()


def test_a_trace_tells_what_happens() -> None:
    trace: list[str] = []
    Race(1, trace).run()
    assert any("starts as" in line for line in trace)


def test_two_channels_opened_in_one_epoch_are_found() -> None:
    race = RaceHistory()
    race.opened += [Opened(b"room", 1, b"a", True), Opened(b"room", 1, b"b", True)]
    assert judge(7, race).violations == {TWO_OWNERS: 1}


def test_channels_of_several_epochs_or_without_a_password_are_no_fault() -> None:
    race = RaceHistory()
    race.opened += [Opened(b"room", 1, b"a", True), Opened(b"room", 2, b"b", True)]
    race.opened += [Opened(b"hall", 1, b"c", False), Opened(b"hall", 1, b"c", False)]
    assert judge(7, race).violations == {}


def test_leaks_rivals_and_disagreements_are_told_with_their_kind() -> None:
    race = RaceHistory()
    race.leaks.append("m1 heard p2")
    race.certain.append("room at 3 s")
    race.disagreed.append("g1 and g2")
    race.refuse(NoMajority("few"))
    outcome = judge(7, race)
    assert outcome.violations == {LEAK: 1, TWO_CERTAIN: 1, DISAGREED: 1}
    assert outcome.told[0] == f"{LEAK}: m1 heard p2"
    assert outcome.refusals == {"NoMajority": 1}


def test_promises_that_are_forgotten_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.mesh.channels.leases.LEASE_NS", 1)
    found = [run_race(seed).violations for seed in range(40)]
    assert any(TWO_CERTAIN in each for each in found)


def test_a_mesh_that_fails_is_named_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_seed: int) -> Race:
        raise RuntimeError("broken")

    monkeypatch.setattr(races, "Race", fail)
    outcome = run_race(5)
    assert (outcome.seed, outcome.violations) == (5, {CRASHED: 1})
    assert "broken" in outcome.told[0]
