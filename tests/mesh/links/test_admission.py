"""Which links may stay."""

import pytest
from tests.mesh.impostor import Impostor
from tests.mesh.mesh import Net, address_of, meshed

from weft.mesh.protocol import Goodbye, Redirect
from weft.mesh.settings import Rules

_S = 1_000_000_000


def test_a_second_link_from_the_same_side_takes_the_place_of_the_first() -> None:
    net = meshed(1)
    rogue = Impostor(net)
    first, second = rogue.join(net[1]), rogue.join(net[1])
    assert first.errors == ["DoubledLink"]
    assert not second.is_over
    assert net[1].refused == {"DoubledLink": 1}


@pytest.mark.parametrize("place", range(90, 99))
def test_of_two_links_that_the_right_side_dialled_stays(place: int) -> None:
    net = meshed(1)
    rogue = Impostor(net, place)
    inbound = rogue.dial(net[1])
    net[1].dial(rogue.address)
    net.carry()
    outbound = rogue.lines[-1]
    is_ours = net[1].node < rogue.node
    assert inbound.is_over == is_ours
    assert outbound.is_over == (not is_ours)


@pytest.mark.parametrize("place", range(90, 99))
def test_a_link_that_may_be_gone_does_not_keep_a_new_one_out(place: int) -> None:
    net = meshed(1)
    rogue = Impostor(net, place)
    inbound = rogue.dial(net[1])
    net.now_ns += _S + 1
    net[1].tell_time()
    net[1].dial(rogue.address)
    net.carry()
    assert inbound.is_over
    assert not rogue.lines[-1].is_over


def test_a_gateway_that_has_begun_anew_takes_the_place_of_what_it_was() -> None:
    net = meshed(1)
    first = Impostor(net).join(net[1])
    second = Impostor(net, number=98)
    second.incarnation = 6
    line = second.join(net[1])
    assert first.is_over
    assert not line.is_over
    assert net[1].knows() == {98}


@pytest.mark.req("RLY-7")
def test_neighbours_on_the_ring_are_taken_in_beyond_the_limit() -> None:
    net = meshed(3, Rules(join=(address_of(1),), max_links=2))
    lines = [Impostor(net, place).join(net[1]) for place in range(60, 80)]
    kept = [line for line in lines if not line.is_over]
    assert kept
    assert len(net[1].fabric.links) <= 2 * 2 + 2
    for line in lines:
        assert line in kept or line.words(Redirect) or line.words(Goodbye)


@pytest.mark.req("RLY-7")
def test_whoever_finds_no_place_is_told_of_those_that_have_some_first_of_its_neighbours() -> None:
    net = meshed(4, Rules(join=(address_of(1),), max_links=1))
    net.wait(5)
    everyone = {address_of(place) for place in (1, 2, 3, 4)}
    told = []
    for place in range(60, 90):
        told += Impostor(net, place).dial(net[1]).words(Redirect)
    assert told
    assert all(word.addresses and set(word.addresses) <= everyone for word in told)


def test_links_that_are_let_go_are_not_asked_for_at_once() -> None:
    net = Net()
    net.begin(1, Rules())
    rogue = Impostor(net)
    line = rogue.join(net[1])
    line.say(Goodbye())
    net.wait(5)
    assert len(rogue.lines) == 1
    net.wait(8)
    assert len(rogue.lines) == 2
