"""Gateways that are forgotten and met again: what was for them before does not come any more."""

import pytest
from tests.mesh.gateways import Mesh, wanted

from weft.mesh.delivery.remote_gateway import EPOCH_MAX
from weft.wire.frames import Kind


def test_what_was_for_a_gateway_before_it_was_forgotten_and_met_again_is_announced() -> None:
    mesh = Mesh([(1, 2)])
    there = mesh[2].local(b"a")
    mesh.settle()
    mesh.cut(1, 2)
    here = mesh[1].local()
    here.publish(b"a", b"lost")
    mesh[1].traffic.part(2)
    mesh[1].traffic.meet(2, "gateway-2")
    mesh[1].traffic.want(2, [wanted(b"a")], [])
    mesh.mend(1, 2)
    here.publish(b"a", b"heard")
    mesh.carry()
    assert [frame.kind for frame in there.frames()] == [Kind.GAP, Kind.MESSAGE]


def test_a_gateway_can_be_forgotten_more_often_than_there_are_epochs() -> None:
    gateway = Mesh([(1, 2)])[1]
    for _ in range(EPOCH_MAX + 2):
        gateway.traffic.part(2)
        gateway.traffic.meet(2, "gateway-2")
    gateway.traffic.part(2)


def test_of_gateways_that_were_forgotten_not_all_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("weft.mesh.delivery.traffic.EPOCHS_MAX", 3)
    gateway = Mesh([(1, 2)])[1]
    for number in range(3, 9):
        gateway.traffic.meet(number, "another")
        gateway.traffic.part(number)
    assert len(gateway.traffic._epochs) == 3
