"""Runs of lanes on a made-up network, and a judge that must find what was spoilt on purpose."""

import pytest
from tests.client.lanes.naive import Naive
from tools.lane_runs.checker import judge
from tools.lane_runs.history import NEVER, Episode, Gap, Heard, Published, Publisher
from tools.lane_runs.run import RELAYED, Run
from tools.lane_runs.runs import joining, result_of, summed

from weft.client.lanes.receive_stream import In, Unheard
from weft.client.lanes.receive_stream import Run as Frames

SEEDS = 100
# Among the next thousands these were wrong once.
FOUND = (3003, 9012)
# Nothing breaks, and requests go by lanes; or the network is too slow for what is said on it.
CALM = 62
SLOW = 7998
SUBJECTS = ("hot", "rare")
ONE = (1001, 1)
OTHER = (1001, 2)


class Deaf(In):
    """Loses what comes by lanes."""

    def by_lane(self, run: Frames | Unheard) -> list[Frames]:
        self.taken += len(run) if isinstance(run, list) else run.count
        return []


def said(count: int) -> Publisher:
    """A publisher that never lost its connection; every third message is to another subject."""
    published = [Published(1.0 + at, SUBJECTS[at % 3 == 2]) for at in range(count)]
    return Publisher(0, published, steady_from=0.5)


def heard(numbers: list[int], subjects: tuple[str, ...] = SUBJECTS) -> Episode:
    """A subscription to which these came."""
    episode = Episode("r", frozenset(subjects), is_whole=True)
    episode.begin(0.7)
    episode.events += [Heard(0, number, ONE) for number in numbers]
    return episode


def found(publisher: Publisher, episode: Episode) -> tuple[int, int, int]:
    """How many were lost in silence, doubled and misordered."""
    verdict = judge([publisher], [episode])
    return len(verdict.lost), len(verdict.doubled), len(verdict.misordered)


def test_what_came_in_order_is_right() -> None:
    assert found(said(9), heard([*range(9)])) == (0, 0, 0)
    assert found(said(9), heard([2, 5, 8], ("rare",))) == (0, 0, 0)


@pytest.mark.parametrize("lost", range(9))
def test_each_message_that_is_lost_is_missed(lost: int) -> None:
    numbers = [number for number in range(9) if number != lost]
    assert found(said(9), heard(numbers)) == (1, 0, 0)


@pytest.mark.parametrize("doubled", range(9))
def test_each_message_that_comes_twice_is_noticed(doubled: int) -> None:
    numbers = sorted([*range(9), doubled])
    assert found(said(9), heard(numbers)) == (0, 1, 0)


@pytest.mark.parametrize("at", range(8))
def test_two_messages_that_change_places_are_noticed(at: int) -> None:
    numbers = [*range(9)]
    numbers[at], numbers[at + 1] = numbers[at + 1], numbers[at]
    assert found(said(9), heard(numbers))[2] == 1


def test_a_gap_excuses_only_what_is_missing_where_it_was_told() -> None:
    episode = heard([0, 1, 4, 5, 7, 8])
    episode.events.insert(2, Gap("lost", 2))
    assert found(said(9), episode) == (1, 0, 0)
    assert judge([said(9)], [episode]).announced == 2


def test_a_gap_told_too_late_excuses_nothing() -> None:
    episode = heard([0, 1, 4, 5, 6, 7, 8])
    episode.events.insert(3, Gap("lost", 2))
    assert found(said(9), episode) == (2, 0, 0)


def test_only_what_was_published_while_a_subscription_was_in_force_is_owed() -> None:
    episode = heard([3, 4, 5])
    episode.spans = [(3.5, 6.5)]
    assert found(said(9), episode) == (0, 0, 0)


def test_what_was_published_before_a_subscription_is_heard_without_holes_or_not_at_all() -> None:
    episode = heard([1, 2, 5, 6, 7, 8])
    episode.spans = [(6.5, NEVER)]
    assert found(said(9), episode) == (2, 0, 0)
    episode.events.insert(2, Gap("lost", 2))
    assert found(said(9), episode) == (0, 0, 0)
    late = heard([5, 6, 7, 8])
    late.spans = [(6.5, NEVER)]
    assert found(said(9), late) == (0, 0, 0)


def test_what_a_publisher_lost_with_its_connection_is_not_owed() -> None:
    publisher = said(9)
    publisher.steady_from = 6.5
    episode = heard([0, 1])
    episode.events += [Heard(0, number, OTHER) for number in (6, 7, 8)]
    assert found(publisher, episode) == (0, 0, 0)
    publisher.steady_from = NEVER
    assert found(publisher, heard([0, 1])) == (0, 0, 0)


def test_a_run_can_be_had_again() -> None:
    first, second = (Run(7, is_traced=True).result() for _ in range(2))
    assert first.trace
    assert first.trace == second.trace


def test_requests_that_run_out_of_time_because_of_lanes_are_found_out() -> None:
    with joining(Deaf):
        result = result_of(CALM)
    assert result.is_late
    assert result.failures == ["without a fault, requests end with TimedOut because of lanes"]


def test_requests_may_run_out_of_time_if_they_would_without_lanes() -> None:
    assert Run(SLOW).result().is_late
    assert Run(SLOW, settings=RELAYED).result().is_late
    assert result_of(SLOW).is_right


@pytest.mark.req("HUB-22")
def test_receivers_that_take_what_comes_are_found_out() -> None:
    with joining(Naive):
        sums = summed(range(12))
    assert sums.counts["misordered"] > 0
    assert sums.counts["doubled"] > 0


@pytest.mark.req("HUB-22")
def test_nothing_is_lost_doubled_or_misordered_whatever_breaks() -> None:
    sums = summed([*range(SEEDS), *FOUND])
    assert not sums.wrong
    assert sums.counts["by lane"] > 1000
    assert sums.counts["promotions"] > SEEDS
    assert sums.counts["faults"] > SEEDS
    assert sums.requests["answered by a lane"] > 1000
