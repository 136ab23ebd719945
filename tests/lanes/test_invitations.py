"""Where receivers say that they listen, and what of it is offered."""

import pytest
from tests.broker.talk import Guest
from tests.lanes.lane_house import HOT, LaneHouse, accept, words

from weft.lanes.route_state import RouteState
from weft.wire.frames import Kind
from weft.wire.lane_messages import lane_frame

UNIX = f"weft-lane-{'5' * 32}"


def two(house: LaneHouse) -> tuple[Guest, Guest]:
    """A publisher and a receiver."""
    receiver = house.knowing("bob", HOT)
    return house.knowing("ann"), receiver


@pytest.mark.req("HUB-2")
def test_no_two_connections_share_an_address() -> None:
    house = LaneHouse()
    bob, eve = house.knowing("bob", HOT), house.knowing("eve", HOT)
    ann = house.knowing("ann")
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    accept(bob, 4000)
    [invite] = words(eve.heard())
    heard = eve.say(lane_frame("ready", ticket=invite.facts["ticket"], port=4000, unix=""))
    assert [frame.kind for frame in heard] == [Kind.ERROR]
    assert house.service.refused == {"NotYours": 1}
    text = "127.0.0.1:4000 is the address of another connection"
    assert house.reason(ann) == f"relayed: no address of eve: {text}"


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_cannot_be_is_refused(port: int) -> None:
    house = LaneHouse()
    ann, bob = two(house)
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    accept(bob, port)
    assert house.service.refused == {"BadOption": 1}
    assert house.route(ann).state is RouteState.RELAYED


def test_a_name_is_told_only_to_the_same_host_and_must_be_that_of_a_listener() -> None:
    house = LaneHouse()
    bob = house.knowing("bob", HOT, host="8.8.8.8")
    ann, cat = house.knowing("ann", host="9.9.9.9"), house.knowing("cat", host="8.8.8.8")
    for publisher in (ann, cat):
        house.lanes.ask(publisher.peer, HOT)
        house.flush()
        accept(bob, 4000, UNIX)
    lanes = [words(publisher.heard())[0].facts["lanes"][0] for publisher in (ann, cat)]
    assert [(lane["address"], lane["unix"]) for lane in lanes] == [
        ("8.8.8.8:4000", ""),
        ("8.8.8.8:4000", UNIX),
    ]
    assert [lane["encrypt"] for lane in lanes] == [True, True]
    house.lanes.ask(house.knowing("dan").peer, HOT)
    house.flush()
    [invite] = words(bob.heard())
    bob.say(lane_frame("ready", ticket=invite.facts["ticket"], port=0, unix=f"{UNIX}0"))
    assert house.service.refused == {"BadOption": 1}


def test_a_receiver_that_listens_nowhere_has_no_lane() -> None:
    house = LaneHouse()
    ann, bob = two(house)
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    accept(bob, 0)
    assert house.reason(ann) == "relayed: no address of bob that the publisher may know"


def test_a_name_alone_is_enough() -> None:
    house = LaneHouse()
    ann, bob = two(house)
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    accept(bob, 0, UNIX)
    [lane] = words(ann.heard())[0].facts["lanes"]
    assert (lane["address"], lane["unix"]) == ("", UNIX)


def test_everything_is_encrypted_if_the_settings_say_so() -> None:
    house = LaneHouse(encrypt="always")
    ann, bob = two(house)
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    assert accept(bob).facts["encrypt"]
