import pytest
from benchmarks.peers.report import Spread
from benchmarks.peers.spreads import all_spreads, failures_of, figures_of, ratio, spread_of
from tests.benchmarks.peers.reports import report


def test_one_value_is_its_own_spread() -> None:
    assert spread_of([3.0]) == Spread(3.0, 3.0, 3.0)


def test_a_spread_is_the_median_and_the_middle_half() -> None:
    assert spread_of([5.0, 1.0, 4.0, 2.0, 3.0]) == Spread(3.0, 2.0, 4.0)


def test_a_ratio_is_the_median_of_the_rounds_own() -> None:
    # 0.2, 0.5 and 0.5; the ratio of the medians would be 0.4.
    assert ratio(report(), "one", "cpu_us", ("weft", "nats29")) == pytest.approx(0.5)


def test_rounds_that_failed_are_left_out_of_a_ratio() -> None:
    assert ratio(report(), "one", "cpu_us", ("redis", "weft")) == pytest.approx(20)


def test_there_is_no_ratio_without_a_common_round() -> None:
    assert ratio(report(), "one", "cpu_us", ("weft", "absent")) is None


def test_failures_are_found_beside_figures() -> None:
    assert figures_of(report(), "one", "redis", "per_s") == {0: 500_000.0}
    assert [each.round for each in failures_of(report(), "one", "redis")] == [1, 2]


def test_spreads_are_by_row_peer_and_metric() -> None:
    assert all_spreads(report())["one"]["redis"]["cpu_us"] == Spread(2.0, 2.0, 2.0)
