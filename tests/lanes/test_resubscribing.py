"""A receiver of a direct route that unsubscribes and subscribes again."""

import pytest
from tests.broker.talk import kinds, subscribe, unsubscribe
from tests.lanes.lane_house import HOT, LaneHouse, go_direct, names

from weft.wire.frames import Kind, encode
from weft.wire.lane_messages import lane_frame


@pytest.mark.req("HUB-22")
@pytest.mark.parametrize("is_one_turn", [True, False])
def test_a_receiver_that_unsubscribes_and_subscribes_again_waits_like_others(
    is_one_turn: bool,
) -> None:
    house = LaneHouse()
    bob, ann = house.knowing("bob", HOT), house.knowing("ann")
    go_direct(house, ann, bob)
    if is_one_turn:
        assert kinds(bob.say(unsubscribe(HOT), subscribe(HOT))) == [Kind.OK]
    else:
        bob.say(unsubscribe(HOT))
        assert bob.say(subscribe(HOT)) == []
    assert names(ann.heard()) == ["withdraw"]
    assert kinds(bob.say(encode(Kind.PING))) == []
    ann.say(lane_frame("withdrawn", HOT))
    assert kinds(bob.heard()) == [Kind.OK, Kind.PONG]
    # The next time that it goes direct he is a receiver as any other.
    house.tick(2)
    go_direct(house, ann, bob)
    eve = house.knowing("eve")
    assert eve.say(subscribe(HOT)) == []
    assert kinds(bob.say(subscribe(b"other.>"))) == [Kind.OK]
