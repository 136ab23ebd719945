import pytest

from weft.cli.bench.measure import (
    Throughput,
    measure_requests,
    measure_throughput,
    percentile,
    shares,
)
from weft.cli.bench.plan import BenchPlan


def plan_at(gateway: str) -> BenchPlan:
    return BenchPlan(gateway=gateway, service="bench", tls_ca=None, size=10, seconds=0.2, window=40)


async def test_every_message_that_counts_arrived(gateway: str) -> None:
    told: list[float] = []
    result = await measure_throughput(
        plan_at(gateway), 3, lambda passed_s, _: told.append(passed_s)
    )
    assert result.readers == 3
    assert result.messages > 0
    assert result.messages % plan_at(gateway).step == 0
    assert result.seconds >= 0.2
    assert told == sorted(told)


async def test_requests_are_timed_one_by_one(gateway: str) -> None:
    result = await measure_requests(plan_at(gateway), lambda *_: None)
    assert result.requests > 0
    assert 0 < result.p50_s <= result.p99_s <= result.p999_s <= result.max_s


def test_rates_follow_from_what_was_counted() -> None:
    result = Throughput(readers=4, size=10, messages=100, seconds=2.0)
    assert result.message_rate == 50
    assert result.delivery_rate == 200


@pytest.mark.parametrize(
    ("part", "value"), [(0.5, 50.0), (0.99, 99.0), (0.999, 100.0), (1.0, 100.0), (0.001, 1.0)]
)
def test_a_percentile_is_a_value_that_was_measured(part: float, value: float) -> None:
    assert percentile([float(each) for each in range(1, 101)], part) == value


def test_one_value_is_every_percentile() -> None:
    assert percentile([7.0], 0.5) == percentile([7.0], 0.999) == 7.0


@pytest.mark.parametrize(
    ("count", "processes", "ranges"),
    [
        (1, 3, [range(1)]),
        (2, 3, [range(1), range(1, 2)]),
        (10, 3, [range(3), range(3, 6), range(6, 10)]),
    ],
)
def test_readers_are_shared_evenly(count: int, processes: int, ranges: list[range]) -> None:
    assert shares(count, processes) == ranges
