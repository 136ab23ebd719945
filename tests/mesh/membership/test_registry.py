"""Who has registered, and what they are told."""

import pytest
from tests.mesh.impostor import Impostor, Line
from tests.mesh.mesh import Net, address_of, meshed

from weft.mesh.protocol import ADDRESSES_MAX, Goodbye, RegistrationConfirmed


def registered(net: Net, place: int, address: str | None = None) -> Line:
    rogue = Impostor(net, place)
    rogue.is_registering = True
    if address is not None:
        rogue.address = address
    return rogue.dial(net[1])


def told(line: Line) -> tuple[str, ...]:
    last: RegistrationConfirmed = line.words(RegistrationConfirmed)[-1]
    return last.addresses


@pytest.mark.req("MM-20")
def test_whoever_registers_is_told_of_all_others_and_of_those_who_come_later() -> None:
    net = meshed(2)
    first = registered(net, 8)
    assert told(first) == (address_of(1), address_of(2))
    registered(net, 9)
    net.wait(1.1)
    assert told(first) == (address_of(9), address_of(1), address_of(2))


def test_nothing_is_told_twice() -> None:
    net = meshed(1)
    line = registered(net, 8)
    net.wait(5)
    assert len(line.words(RegistrationConfirmed)) == 1


def test_whoever_leaves_is_not_told_of_any_more() -> None:
    net = meshed(1)
    first, second = registered(net, 8), registered(net, 9)
    net.wait(1.1)
    second.say(Goodbye(is_leaving=True))
    net.wait(1.1)
    assert told(first) == (address_of(1),)


def test_of_many_some_are_told_and_not_all_get_the_same() -> None:
    net = meshed(1)
    lines = [registered(net, place) for place in range(50, 90)]
    net.wait(1.1)
    lists = [told(line) for line in lines]
    assert {len(each) for each in lists} == {ADDRESSES_MAX}
    assert len({address for each in lists for address in each}) == 41
    for place, each in zip(range(50, 90), lists, strict=True):
        assert address_of(place) not in each


@pytest.mark.parametrize("address", ["", "nonsense", "a:0"])
def test_what_is_no_address_is_told_to_nobody(address: str) -> None:
    net = meshed(1)
    registered(net, 8, address)
    assert told(registered(net, 9)) == (address_of(1),)


def test_no_more_than_so_many_may_register(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.mesh.membership.registry.REGISTERED_MAX", 2)
    net = meshed(1)
    lines = [registered(net, place) for place in (7, 8, 9)]
    assert [line.errors for line in lines] == [[], [], ["TooMany"]]
    net.wait(1.1)
    assert net[1].fabric.registry.addresses == [address_of(7), address_of(8)]
