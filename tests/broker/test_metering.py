import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.broker.metering import RATE_WINDOW_NS, Meter, PublisherTraffic

SECOND_NS = 1_000_000_000


def test_a_flow_counts_messages_bytes_and_time() -> None:
    flow = PublisherTraffic(100)
    flow.record(2, 300, 100)
    flow.record(1, 50, 400)
    assert (flow.messages, flow.bytes) == (3, 350)
    assert (flow.first_ns, flow.last_ns) == (100, 400)


def test_a_steady_rate_is_told_as_it_is() -> None:
    flow = PublisherTraffic(0)
    for tick in range(10_000):
        flow.record(10, 1000, tick * SECOND_NS // 1000)
    now = 10 * SECOND_NS
    assert flow.message_rate(now) == pytest.approx(10_000, rel=0.02)
    assert flow.byte_rate(now) == pytest.approx(1_000_000, rel=0.02)


def test_a_rate_decays_when_nothing_is_sent() -> None:
    flow = PublisherTraffic(0)
    flow.record(100, 1000, 0)
    before = flow.byte_rate(0)
    assert flow.byte_rate(RATE_WINDOW_NS) == pytest.approx(before / math.e)
    assert flow.byte_rate(3600 * SECOND_NS) == pytest.approx(0)
    assert flow.message_rate(RATE_WINDOW_NS) == pytest.approx(100 / 2 / math.e)


def test_a_clock_that_steps_back_does_no_harm() -> None:
    flow = PublisherTraffic(SECOND_NS)
    flow.record(1, 10, SECOND_NS)
    flow.record(1, 10, 0)
    assert flow.bytes == 20
    assert flow.byte_rate(0) == pytest.approx(10)


def test_each_subject_has_its_own_flow() -> None:
    meter = Meter(0)
    meter.flow(b"a", 0).record(1, 10, 0)
    meter.flow(b"b", 0).record(2, 20, 0)
    assert meter.flow(b"a", 5).bytes == 10
    assert {subject: flow.messages for subject, flow in meter.flows().items()} == {b"a": 1, b"b": 2}


def test_beyond_its_limit_the_idlest_flows_are_folded_into_the_others() -> None:
    meter = Meter(0, flows_max=4)
    held = [meter.flow(b"%d" % number, number) for number in range(4)]
    for number, flow in enumerate(held):
        flow.record(1, 10, number)
    meter.flow(b"new", 9)
    assert set(meter.flows()) == {b"2", b"3", b"new"}
    assert meter.others.bytes == 20
    assert [flow.is_folded for flow in held] == [True, True, False, False]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1000)), max_size=200))
def test_totals_stay_right_and_size_bounded_whatever_is_sent(
    sent: list[tuple[int, int]],
) -> None:
    meter = Meter(0, flows_max=8)
    for now, (subject, size) in enumerate(sent):
        meter.flow(b"%d" % subject, now).record(1, size, now)
        assert len(meter) <= 8
    total = meter.total()
    assert total.messages == len(sent)
    assert total.bytes == sum(size for _, size in sent)
    assert total.last_ns == max(0, len(sent) - 1)


@pytest.mark.parametrize(("one", "other"), [((1, 9), (3, 5)), ((3, 5), (1, 9))])
def test_a_flow_that_takes_over_another_lasted_as_long_as_both(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    flows = []
    for first_ns, last_ns in (one, other):
        flow = PublisherTraffic(first_ns)
        flow.record(1, 10, last_ns)
        flows.append(flow)
    flows[0].fold(flows[1])
    assert (flows[0].first_ns, flows[0].last_ns) == (1, 9)


def test_a_meter_says_which_subjects_have_a_flow_of_their_own() -> None:
    meter = Meter(0)
    meter.flow(b"a", 0)
    assert meter.has(b"a")
    assert not meter.has(b"b")


def test_the_rate_of_a_publisher_is_that_of_all_it_sends() -> None:
    meter = Meter(0)
    assert (meter.message_rate(0), meter.byte_rate(0)) == (0, 0)
    meter.flow(b"a", 0).record(2, 100, 0)
    meter.flow(b"b", 0).record(4, 300, 0)
    meter.others.record(4, 200, 0)
    assert meter.message_rate(0) == pytest.approx(10 * 1e9 / RATE_WINDOW_NS)
    assert meter.byte_rate(0) == pytest.approx(600 * 1e9 / RATE_WINDOW_NS)
    assert meter.byte_rate(RATE_WINDOW_NS) == pytest.approx(600 / 2 / math.e)
