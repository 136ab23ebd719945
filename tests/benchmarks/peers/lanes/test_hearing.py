"""What a receiver tells by its pipe, and what it says at the end."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from benchmarks.peers.lanes.bodies import END, PROBE, numbered, timed
from benchmarks.peers.lanes.hearing import FOUND, STEP, TOLD, WRONG, Heard, latencies
from benchmarks.peers.lanes.part import Part

SIZE = 16


@dataclass
class Receiver:
    """A receiver, and the other end of its pipe."""

    reading: int
    writing: int
    ended: list[bool] = field(default_factory=list)

    def hearing(self, case: str) -> Heard:
        part = Part("", case, "", 1, SIZE, 1.0, [self.writing])
        return Heard(part, lambda: self.ended.append(True))

    def told(self) -> bytes:
        os.set_blocking(self.reading, False)
        try:
            return os.read(self.reading, 65_536)
        except BlockingIOError:
            return b""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    reading, writing = os.pipe()
    yield Receiver(reading, writing)
    os.close(reading)
    os.close(writing)


def test_a_flow_is_told_of_in_steps(receiver: Receiver) -> None:
    heard = receiver.hearing("flow")
    bodies = numbered(SIZE)
    for body in bodies[: STEP - 1]:
        heard.callback(body)
    assert receiver.told() == b""
    heard.callback(bodies[STEP - 1])
    assert receiver.told() == TOLD
    assert heard.facts() == {"count": STEP}


@pytest.mark.parametrize("places", [(1,), (0, 0), (0, 2)], ids=["lost", "twice", "left out"])
def test_what_is_not_next_is_told_of(receiver: Receiver, places: tuple[int, ...]) -> None:
    heard = receiver.hearing("flow")
    for place in places:
        heard.callback(numbered(SIZE)[place])
    assert receiver.told() == WRONG


@pytest.mark.parametrize("case", ["flow", "pace"])
def test_the_first_probe_is_told_of_and_none_is_counted(receiver: Receiver, case: str) -> None:
    heard = receiver.hearing(case)
    heard.callback(PROBE)
    heard.callback(PROBE)
    assert receiver.told() == FOUND
    assert heard.count == 0


@pytest.mark.parametrize("case", ["flow", "turns"])
def test_the_end_is_noticed(receiver: Receiver, case: str) -> None:
    receiver.hearing(case).callback(END)
    assert receiver.ended == [True]
    assert receiver.told() == b""


def test_every_timed_message_is_told_of_and_timed(receiver: Receiver) -> None:
    heard = receiver.hearing("turns")
    for number in range(3):
        heard.callback(timed(number, SIZE))
    assert receiver.told() == TOLD * 3
    facts = heard.facts()
    assert facts["count"] == 3
    assert 0 < facts["p50_us"] <= facts["p99_us"]


def test_a_timed_message_that_is_not_next_is_told_of(receiver: Receiver) -> None:
    receiver.hearing("pace").callback(timed(1, SIZE))
    assert receiver.told() == WRONG


def test_the_first_tenth_of_latencies_does_not_count() -> None:
    took_ns = [10**9] * 10 + list(range(1000, 91_000, 1000))
    assert latencies(took_ns) == {"p50_us": 46.0, "p99_us": 90.0}


def test_without_latencies_there_is_no_figure() -> None:
    assert latencies([]) == {}
