"""How busy a gateway says that it is."""

import pytest
from tests.broker.talk import NotedDoor
from tests.mesh.gateways import SECOND_NS, Gateway, Mesh

from weft.broker.disconnect import leave
from weft.mesh.membership.load_level import LOAD_MAX, LOAD_NS, OwnLoad, step_of, weight_of


@pytest.mark.parametrize(
    ("weight", "step"),
    [(0, 0), (0.9, 0), (1, 1), (1.9, 1), (2, 2), (3, 2), (4, 3), (1000, 10), (1e30, LOAD_MAX)],
)
def test_a_step_is_twice_the_last(weight: float, step: int) -> None:
    assert step_of(weight) == step


def crowded(gateway: Gateway, connections: int) -> None:
    """Let so many be connected."""
    service = gateway.service
    for peer in list(service.peers.values())[connections:]:
        leave(peer)
    for _ in range(connections - len(service.peers)):
        service.join(1, NotedDoor())


def test_connections_messages_and_bytes_weigh() -> None:
    gateway = Gateway(1)
    crowded(gateway, 2)
    local = gateway.local()
    assert weight_of(gateway.service) == 3
    local.publish(b"a", *[b"x" * 100] * 1000)
    with_messages = weight_of(gateway.service)
    assert with_messages > 4
    local.publish(b"a", b"x" * 900_000)
    assert weight_of(gateway.service) > with_messages + 1


def test_other_gateways_weigh_nothing() -> None:
    mesh = Mesh([(1, 2)])
    assert len(mesh[1].service.peers) == 1
    assert weight_of(mesh[1].service) == 0


def test_a_step_is_told_at_most_every_five_seconds() -> None:
    gateway = Gateway(1)
    service = gateway.service
    load = OwnLoad()
    crowded(gateway, 1)
    assert load.look(service)
    crowded(gateway, 1000)
    assert not load.look(service)
    service.now_ns += LOAD_NS - 1
    assert not load.look(service)
    service.now_ns += 1
    assert load.look(service)
    assert load.step == 10
    service.now_ns += LOAD_NS
    assert not load.look(service)


def test_what_lies_between_two_steps_is_not_told_again_and_again() -> None:
    gateway = Gateway(1)
    load = OwnLoad()
    told = []
    for connections in (64, 63, 64, 50, 64, 47, 63, 64):
        crowded(gateway, connections)
        gateway.service.now_ns += 60 * SECOND_NS
        if load.look(gateway.service):
            told.append(load.step)
    assert told == [7, 6, 7]
