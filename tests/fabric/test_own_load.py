"""How busy a gateway says that it is."""

import pytest
from tests.fabric.gateways import SECOND_NS, Gateway

from weft.fabric.own_load import LOAD_MAX, LOAD_NS, OwnLoad, step_of, weight_of


@pytest.mark.parametrize(
    ("weight", "step"),
    [(0, 0), (0.9, 0), (1, 1), (1.9, 1), (2, 2), (3, 2), (4, 3), (1000, 10), (1e30, LOAD_MAX)],
)
def test_a_step_is_twice_the_last(weight: float, step: int) -> None:
    assert step_of(weight) == step


def test_connections_messages_and_bytes_weigh() -> None:
    gateway = Gateway(1)
    local = gateway.local()
    assert weight_of(gateway.service, 3) == 3
    local.publish(b"a", *[b"x" * 100] * 1000)
    with_messages = weight_of(gateway.service, 3)
    assert with_messages > 4
    local.publish(b"a", b"x" * 900_000)
    assert weight_of(gateway.service, 3) > with_messages + 1


def test_a_step_is_told_at_most_every_five_seconds() -> None:
    service = Gateway(1).service
    load = OwnLoad()
    assert load.look(service, 1)
    assert not load.look(service, 1000)
    service.now_ns += LOAD_NS - 1
    assert not load.look(service, 1000)
    service.now_ns += 1
    assert load.look(service, 1000)
    assert load.step == 10
    service.now_ns += LOAD_NS
    assert not load.look(service, 1000)


def test_what_lies_between_two_steps_is_not_told_again_and_again() -> None:
    service = Gateway(1).service
    load = OwnLoad()
    told = []
    for connections in (64, 63, 64, 50, 64, 47, 63, 64):
        service.now_ns += 60 * SECOND_NS
        if load.look(service, connections):
            told.append(load.step)
    assert told == [7, 6, 7]
