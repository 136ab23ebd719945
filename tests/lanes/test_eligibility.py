"""Why a route that is hot stays at the gateway."""

import pytest
from tests.broker.talk import Guest, message, subscribe
from tests.lanes.lane_house import HOT, LaneHouse, make_hot, names

from weft.broker.delivery.outbox import Outbox
from weft.errors import NotAllowed


def two(house: LaneHouse) -> tuple[Guest, Guest]:
    """A publisher and a receiver."""
    receiver = house.knowing("bob", HOT)
    return house.knowing("ann"), receiver


def far(house: LaneHouse) -> None:
    outbox = Outbox(house.arena, house.service.bounds)
    outbox.is_distant = True
    house.service.router.subscribe(outbox, HOT)


def group(house: LaneHouse) -> None:
    house.knowing("worker").say(subscribe(HOT, b"workers"))


def many(house: LaneHouse) -> None:
    for number in range(8):
        house.knowing(f"r{number}", HOT)


def itself(house: LaneHouse) -> None:
    house.guests[2].say(subscribe(HOT))


def old(house: LaneHouse) -> None:
    house.guest(b"old", HOT)


def tapped(house: LaneHouse) -> None:
    house.service.router.tap(Outbox(house.arena, house.service.bounds), HOT)


def kept(house: LaneHouse) -> None:
    route = house.service.router.route(HOT)
    assert route is not None
    route.is_journaled = True


def apart(house: LaneHouse) -> None:
    house.knowing("eve", HOT, host="")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (far, "subscribed at other gateways"),
        (group, "has a queue group"),
        (many, "9 receivers, at most 8"),
        (itself, "the publisher subscribes to it itself"),
        (old, "receiver old does not accept lanes"),
        (kept, "journaled"),
        (tapped, "receiver of this gateway does not accept lanes"),
        (apart, "receiver eve is not connected by TCP"),
    ],
)
@pytest.mark.req("HUB-22")
def test_a_hot_route_that_cannot_be_direct_says_why(change: object, reason: str) -> None:
    house = LaneHouse()
    ann, bob = two(house)
    assert callable(change)
    change(house)
    make_hot(house, ann)
    assert house.reason(ann) == f"relayed: {reason}"
    assert "invite" not in names(bob.heard())


@pytest.mark.req("HUB-22")
def test_a_route_says_that_nobody_listens_or_that_its_publisher_knows_no_lanes() -> None:
    house = LaneHouse()
    ann = house.knowing("ann")
    make_hot(house, ann)
    assert house.reason(ann) == "relayed: no subscribers"
    house.knowing("bob", HOT)
    old_one = house.guest(b"old")
    make_hot(house, old_one)
    assert house.reason(old_one) == "relayed: the publisher does not accept lanes"


def test_channels_and_the_systems_own_subjects_have_no_lanes() -> None:
    house = LaneHouse(messages_s=0.001, hold_s=0.5)
    ann, bob = two(house)
    ann.peer.channels = {b"0" * 32: b"room"}
    inside = b"_CHANNEL." + b"0" * 32 + b".x"
    ann.say(message(inside), message(bob.inbox + b"1"))
    house.tick()
    assert len(house.lanes.talk.routes) == 0
    assert house.reason(ann, inside) == "relayed: in a channel"
    with pytest.raises(NotAllowed):
        house.lanes.ask(ann.peer, inside)


def test_what_stays_at_a_gateway_may_have_lanes() -> None:
    house = LaneHouse(messages_s=0.001, hold_s=0.5)
    bob, ann = house.knowing("bob", b"_LOCAL.x"), house.knowing("ann")
    for _ in range(2):
        ann.say(message(b"_LOCAL.x"))
        house.tick()
    assert "invite" in names(bob.heard())
