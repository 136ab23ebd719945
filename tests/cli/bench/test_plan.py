import msgspec
import pytest

from weft.cli.bench.plan import STEPS_IN_WINDOW, WINDOW_BYTES, BenchPlan, window_for
from weft.wire.subjects import checked_subject


def plan_of(window: int) -> BenchPlan:
    return BenchPlan(gateway="g", service="s", tls_ca=None, size=1, seconds=1.0, window=window)


@pytest.mark.parametrize(("window", "step"), [(1, 1), (3, 1), (4, 1), (1000, 250)])
def test_a_reader_speaks_several_times_a_window(window: int, step: int) -> None:
    assert plan_of(window).step == step


@pytest.mark.parametrize("size", [0, 100, 10_000, 1 << 20])
def test_a_window_is_small_in_bytes_but_never_empty(size: int) -> None:
    window = window_for(size)
    assert window >= STEPS_IN_WINDOW
    assert window == STEPS_IN_WINDOW or window * size <= WINDOW_BYTES


def test_two_benchmarks_never_meet() -> None:
    one, two = plan_of(1), plan_of(1)
    assert one.subject("data") != two.subject("data")
    assert checked_subject(one.subject("data")).startswith(b"_LOCAL.")


def test_a_plan_reaches_another_process_unchanged() -> None:
    plan = plan_of(8)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=BenchPlan) == plan
    assert plan.target().gateway == "g"
