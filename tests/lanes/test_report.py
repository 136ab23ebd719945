"""The state of every route, and the reason for it."""

import pytest
from tests.broker.talk import message
from tests.lanes.lane_house import HOT, LaneHouse, go_direct, heat

from weft.lanes.report import lane_counts, route_facts
from weft.wire.lane_messages import lane_frame


@pytest.mark.req("HUB-22")
def test_every_route_says_where_it_goes_and_why() -> None:
    house = LaneHouse()
    bob, ann = house.knowing("bob", HOT), house.knowing("ann")
    go_direct(house, ann, bob)
    ann.say(message(b"slow"), lane_frame("counts", flows=[[HOT.decode(), 10, 500]]))
    bob.say(message(ann.inbox + b"1"))
    answer = route_facts(house.lanes, 10)
    direct, slow = answer["routes"]
    assert answer["more"] == 0
    assert direct == {
        "subject": HOT.decode(),
        "connection": ann.peer.number,
        "name": "ann",
        "state": "direct",
        "reason": "requested by its publisher",
        "since_ns": house.service.wall_ns,
        "receivers": ["bob"],
        "message_rate": 5.0,
        "byte_rate": 250.0,
        "direct_messages": 10,
        "direct_bytes": 500,
    }
    assert (slow["subject"], slow["state"], slow["receivers"]) == ("slow", "relayed", [])
    assert slow["reason"] == "below threshold: 0 of 1,000 messages/s"
    assert slow["since_ns"] == house.service.wall_ns


def test_of_many_routes_the_busiest_are_listed() -> None:
    house = LaneHouse()
    ann, bob = house.knowing("ann"), house.knowing("bob")
    heat(ann, b"much", 100)
    heat(bob, b"little", 1)
    answer = route_facts(house.lanes, 1)
    assert [each["subject"] for each in answer["routes"]] == ["much"]
    assert answer["more"] == 1
    assert [each["name"] for each in route_facts(house.lanes, 9, b"little")["routes"]] == ["bob"]
    one = route_facts(house.lanes, 9, None, ann.peer.number)["routes"]
    assert [each["name"] for each in one] == ["ann"]


def test_a_route_that_was_asked_for_and_never_used_is_listed() -> None:
    house = LaneHouse()
    ann = house.knowing("ann")
    house.lanes.ask(ann.peer, HOT)
    [row] = route_facts(house.lanes, 9)["routes"]
    assert (row["reason"], row["message_rate"]) == ("no subscribers", 0.0)


def test_bytes_are_told_if_they_are_closer_to_the_threshold() -> None:
    house = LaneHouse()
    ann = house.knowing("ann")
    ann.say(message(HOT, bytes(10_000)))
    assert house.reason(ann) == "relayed: below threshold: 5,022 of 1,000,000 bytes/s"


def test_a_hot_route_that_nobody_looked_at_says_how_hot_it_is() -> None:
    house = LaneHouse()
    house.knowing("bob", HOT)
    ann = house.knowing("ann")
    heat(ann)
    assert house.reason(ann) == "relayed: 2,000 messages/s, over 1,000"


def test_lanes_are_counted() -> None:
    house = LaneHouse()
    bob, ann = house.knowing("bob", HOT), house.knowing("ann")
    go_direct(house, ann, bob)
    assert lane_counts(house.lanes) == {
        "lanes": 1,
        "routes_direct": 1,
        "promotions": 1,
        "demotions": {},
    }
    ann.say(lane_frame("declined", HOT, reason="broken"))
    assert lane_counts(house.lanes)["demotions"] == {"publisher": 1}
    assert lane_counts(house.lanes)["routes_direct"] == 0


def test_a_direct_route_says_how_much_of_it_is_relayed_all_the_same() -> None:
    house = LaneHouse()
    bob, ann = house.knowing("bob", HOT), house.knowing("ann")
    heat(ann, count=100)
    bob.heard()
    go_direct(house, ann, bob)
    assert house.reason(ann) == "direct: requested by its publisher"
    ann.say(lane_frame("counts", flows=[[HOT.decode(), 300, 30_000]]))
    assert house.reason(ann) == "direct: requested by its publisher"
    heat(ann, count=100)
    assert (
        house.reason(ann)
        == "direct: requested by its publisher; 25% relayed, in order with other subjects"
    )
