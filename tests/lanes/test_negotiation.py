"""From direct back to the gateway: who has to wait, who is told, and who loses its lanes."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.broker.talk import ANSWER, Guest, bodies, errors, kinds, message, subscribe
from tests.broker.talk import unsubscribe as unsubscribe_frame
from tests.lanes.lane_house import HOT, LaneHouse, accept, go_direct, names, words

from weft.broker.delivery.outbox import Outbox
from weft.broker.disconnect import leave
from weft.lanes.report import lane_counts
from weft.lanes.route_state import RouteState
from weft.lanes.settings import LaneSettings
from weft.wire.frames import Kind, encode
from weft.wire.lane_messages import lane_frame
from weft.wire.message.message import Message


def begun(**settings: Any) -> tuple[LaneHouse, Guest, Guest]:
    """A house with a route from ann to bob that is direct."""
    house = LaneHouse(**settings)
    bob = house.knowing("bob", HOT)
    ann = house.knowing("ann")
    go_direct(house, ann, bob)
    return house, ann, bob


@pytest.mark.req("HUB-22")
def test_who_subscribes_to_a_direct_route_has_its_ok_only_once_that_is_back() -> None:
    house, ann, _ = begun()
    eve = house.knowing("eve")
    assert eve.say(subscribe(HOT), encode(Kind.PING)) == []
    [told] = words(ann.heard())
    assert (told.word, told.subject, told.facts) == ("withdraw", HOT, {"reason": "eve subscribed"})
    assert house.reason(ann) == "withdrawing: eve subscribed"
    ann.say(lane_frame("withdrawn", HOT), message(HOT, b"first"))
    heard = eve.heard()
    assert kinds(heard) == [Kind.OK, Kind.PONG, Kind.MESSAGE]
    assert bodies(heard)[-1] == b"first"
    assert house.reason(ann) == "relayed: eve subscribed"


@pytest.mark.req("HUB-22")
def test_who_comes_while_a_route_is_on_its_way_back_waits_too() -> None:
    house, ann, bob = begun()
    eve, dan, cat = house.knowing("eve"), house.knowing("dan"), house.knowing("cat")
    eve.say(subscribe(HOT))
    assert dan.say(subscribe(b"prices.>")) == []
    assert kinds(bob.say(subscribe(HOT))) == [Kind.OK]
    assert kinds(cat.say(subscribe(b"other"))) == [Kind.OK]
    ann.say(lane_frame("withdrawn", HOT))
    assert kinds(eve.heard()) == kinds(dan.heard()) == [Kind.OK]


def test_a_member_of_a_group_waits_too() -> None:
    house, ann, _ = begun()
    eve = house.knowing("eve")
    assert eve.say(subscribe(HOT, b"workers")) == []
    assert house.reason(ann) == "withdrawing: has a queue group"
    ann.say(lane_frame("withdrawn", HOT))
    assert kinds(eve.heard()) == [Kind.OK]


def test_who_wants_no_answer_gets_none_afterwards() -> None:
    house, ann, _ = begun()
    eve = house.knowing("eve")
    eve.say(subscribe(HOT, flags=0))
    ann.say(lane_frame("withdrawn", HOT))
    assert eve.heard() == []
    assert kinds(eve.say(encode(Kind.PING))) == [Kind.PONG]


def test_who_waits_for_two_routes_waits_for_both() -> None:
    house, ann, bob = begun()
    cat = house.knowing("cat")
    go_direct(house, cat, bob)
    eve = house.knowing("eve")
    eve.say(subscribe(HOT))
    ann.say(lane_frame("withdrawn", HOT))
    assert eve.heard() == []
    cat.say(lane_frame("withdrawn", HOT))
    assert kinds(eve.heard()) == [Kind.OK]


def test_who_leaves_while_it_waits_is_forgotten() -> None:
    house, ann, _ = begun()
    eve = house.knowing("eve")
    eve.say(subscribe(HOT))
    leave(eve.peer)
    assert errors(ann.say(lane_frame("withdrawn", HOT))) == []
    assert house.route(ann).waiters == set()


def test_a_publisher_that_does_not_come_back_is_ended_and_the_ok_goes_out() -> None:
    house, ann, bob = begun()
    eve = house.knowing("eve")
    eve.say(subscribe(HOT))
    house.tick(3)
    house.tick()
    heard = ann.heard()
    assert errors(heard) == ["TooSlow"]
    assert ann.peer.is_over
    assert kinds(eve.heard()) == [Kind.OK]
    assert [(each.word, each.facts) for each in words(bob.heard())] == [
        ("over", {"peer": ann.peer.number, "reason": "ann is gone", "gone": True})
    ]


def test_a_subscriber_that_comes_during_an_offer_ends_it_and_waits() -> None:
    house = LaneHouse()
    bob, ann, eve = house.knowing("bob", HOT), house.knowing("ann"), house.knowing("eve")
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    accept(bob)
    assert eve.say(subscribe(HOT)) == []
    assert names(ann.heard()) == ["offer", "withdraw"]
    ann.say(lane_frame("declined", HOT, reason="withdrawn"))
    assert kinds(eve.heard()) == [Kind.OK]


@pytest.mark.req("HUB-13")
def test_who_ignores_an_offer_that_is_withdrawn_is_not_ended() -> None:
    house = LaneHouse()
    bob, ann, eve = house.knowing("bob", HOT), house.knowing("ann"), house.knowing("eve")
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    accept(bob)
    eve.say(subscribe(HOT))
    house.tick(3)
    assert kinds(eve.heard()) == [Kind.OK]
    assert not ann.peer.is_over
    # It may not go direct after all: somebody would miss what it sends.
    ann.heard()
    assert errors(ann.say(lane_frame("direct", HOT))) == ["TooSlow"]


def test_who_goes_direct_while_it_is_told_to_come_back_has_to_come_back() -> None:
    house = LaneHouse()
    bob, ann, eve = house.knowing("bob", HOT), house.knowing("ann"), house.knowing("eve")
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    accept(bob)
    eve.say(subscribe(HOT))
    ann.say(lane_frame("direct", HOT))
    assert eve.heard() == []
    ann.say(lane_frame("withdrawn", HOT))
    assert kinds(eve.heard()) == [Kind.OK]
    assert house.lanes.talk.promotions == 0


def test_a_subscriber_that_comes_while_receivers_are_asked_waits_for_nothing() -> None:
    house = LaneHouse()
    bob, ann, eve = house.knowing("bob", HOT), house.knowing("ann"), house.knowing("eve")
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    assert kinds(eve.say(subscribe(HOT)))[-1] == Kind.OK
    assert house.reason(ann) == "relayed: eve subscribed"
    house.tick()
    bob.heard()
    assert names(eve.heard()) == ["invite"]


def test_a_receiver_that_goes_in_the_moment_of_its_answer_ends_the_offer() -> None:
    house = LaneHouse()
    bob, eve = house.knowing("bob", HOT), house.knowing("eve", HOT)
    ann = house.knowing("ann")
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    accept(eve, 4001)
    [invite] = words(bob.heard())
    ready = lane_frame("ready", ticket=invite.facts["ticket"], port=4000, unix="")
    bob.say(unsubscribe_frame(HOT), ready)
    assert house.reason(ann) == "relayed: a receiver unsubscribed"
    assert names(ann.heard()) == ["withdraw"]


def test_a_receiver_that_unsubscribes_ends_the_lanes() -> None:
    _house, ann, bob = begun()
    bob.say(unsubscribe_frame(HOT))
    assert [each.facts["reason"] for each in words(ann.heard())] == ["no subscribers"]


def test_a_change_that_leaves_the_audience_as_it_is_changes_nothing() -> None:
    house, ann, bob = begun()
    # Of several policies the one that keeps most counts.
    assert kinds(bob.say(subscribe(b"prices.*", policy="latest"))) == [Kind.OK]
    assert house.route(ann).state is RouteState.DIRECT


@pytest.mark.req("HUB-22")
@pytest.mark.parametrize("policy", ["latest", "drop_old", "drop_new"])
def test_whoever_would_rather_miss_some_than_be_waited_for_is_relayed_to(policy: str) -> None:
    house, ann, bob = begun()
    eve = house.knowing("eve")
    eve.say(subscribe(HOT, policy=policy))
    assert house.reason(ann) == f"withdrawing: receiver eve has the policy {policy}"
    ann.say(lane_frame("withdrawn", HOT))
    bob.heard()
    house.tick(5)
    assert house.reason(ann) == f"relayed: receiver eve has the policy {policy}"
    assert "invite" not in names(bob.heard())


def test_interest_of_another_gateway_ends_the_lanes() -> None:
    house, ann, _ = begun()
    outbox = Outbox(house.arena, house.service.bounds)
    outbox.is_distant = True
    house.service.router.subscribe(outbox, HOT)
    house.flush()
    assert house.reason(ann) == "withdrawing: subscribed at other gateways"


@pytest.mark.req("HUB-20")
def test_the_lanes_that_led_to_a_client_that_leaves_are_withdrawn() -> None:
    house = LaneHouse()
    bob, eve = house.knowing("bob", HOT), house.knowing("eve", HOT)
    ann = house.knowing("ann")
    go_direct(house, ann, bob, eve)
    bob.say(encode(Kind.GOODBYE))
    told = words(ann.heard())
    assert [(each.word, each.facts.get("peer")) for each in told] == [
        ("withdraw", None),
        ("over", bob.peer.number),
    ]
    assert house.reason(ann) == "withdrawing: receiver bob is gone"
    ann.say(lane_frame("withdrawn", HOT))
    # The audience is another one: it need not wait for long.
    house.tick()
    accept(eve, 4001)
    assert names(ann.heard()) == ["offer"]


@pytest.mark.req("HUB-2", "HUB-20")
def test_an_address_is_free_again_when_its_owner_is_over() -> None:
    house, _, bob = begun()
    claims = house.lanes.talk.claims
    eve = house.knowing("eve")
    leave(bob.peer)
    assert claims.claim(eve.peer, 4000) == "127.0.0.1:4000"
    assert claims.claim(eve.peer, 4001) == "127.0.0.1:4001"
    assert claims.claim(house.knowing("dan").peer, 4000) == "127.0.0.1:4000"


def test_a_rate_that_falls_brings_a_route_back_after_a_while() -> None:
    house, ann, _ = begun(idle_s=10)
    route = house.route(ann)
    route.is_pinned = False
    for _ in range(10):
        house.tick()
        assert route.state is RouteState.DIRECT
    house.tick()
    assert words(ann.heard())[0].facts == {"reason": "rate fell"}
    ann.say(lane_frame("withdrawn", HOT))
    assert lane_counts(house.lanes)["demotions"] == {"rate": 1}


def test_what_was_counted_keeps_a_route_direct_and_its_failures_are_forgotten() -> None:
    house, ann, _ = begun(idle_s=2)
    route = house.route(ann)
    route.is_pinned = False
    route.failures = 3
    for _ in range(40):
        ann.say(lane_frame("counts", flows=[[HOT.decode(), 2000, 100_000]]))
        house.tick()
    assert route.state is RouteState.DIRECT
    assert route.failures == 0


def test_settings_that_forbid_lanes_bring_routes_back() -> None:
    house, ann, _ = begun()
    house.lanes.settings = LaneSettings(enabled=False)
    house.tick()
    assert house.reason(ann) == "withdrawing: lanes are off for this subject"


def test_a_lane_that_broke_is_tried_again_later() -> None:
    house, ann, bob = begun(retry_s=5)
    ann.say(lane_frame("declined", HOT, reason="bob hung up"))
    assert house.reason(ann) == "relayed: bob hung up"
    house.tick(4)
    assert names(bob.heard()) == []
    house.tick()
    assert names(bob.heard()) == ["invite"]
    reason = house.reason(ann)
    assert reason.startswith("asked: ")
    assert reason.endswith("; attempt 2, the last failed: bob hung up")


def test_a_lane_that_broke_because_its_receiver_left_is_soon_tried_with_the_others() -> None:
    house = LaneHouse(retry_s=600)
    bob, eve = house.knowing("bob", HOT), house.knowing("eve", HOT)
    ann = house.knowing("ann")
    go_direct(house, ann, bob, eve)
    ann.say(lane_frame("declined", HOT, reason="eve hung up"))
    house.tick()
    assert names(bob.heard()) == []
    leave(eve.peer)
    for _ in range(3):
        house.tick()
    assert names(bob.heard()) == ["invite"]


def test_whoever_asks_is_not_made_to_wait_because_subscribers_have_changed() -> None:
    house, ann, bob = begun()
    eve = house.knowing("eve")
    eve.say(subscribe(HOT))
    ann.say(lane_frame("withdrawn", HOT))
    assert house.route(ann).state is RouteState.RELAYED
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    assert "invite" in names(bob.heard())
    assert "invite" in names(eve.heard())


@pytest.mark.req("HUB-18")
def test_a_receiver_that_does_not_answer_any_more_brings_the_route_back() -> None:
    house, ann, bob = begun()
    bob.say(encode(Kind.SUBSCRIBE, HOT, Message(listen_only=True).encode()))
    house.flush()
    assert house.reason(ann) == "withdrawing: bob changed how it answers requests"


@pytest.mark.parametrize("state", ["offered", "direct"])
def test_a_publisher_may_come_back_by_itself(state: str) -> None:
    house = LaneHouse()
    bob, ann = house.knowing("bob", HOT), house.knowing("ann")
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    accept(bob)
    if state == "direct":
        ann.say(lane_frame("direct", HOT))
    ann.say(lane_frame("withdrawn", HOT))
    assert house.route(ann).state is RouteState.RELAYED


def test_who_goes_direct_twice_or_without_an_offer() -> None:
    _house, ann, bob = begun()
    assert ann.say(lane_frame("direct", HOT)) == []
    heard = bob.say(lane_frame("direct", HOT))
    assert names(heard) == ["withdraw"]
    assert errors(heard) == ["UsageError"]


def two_words(number: int) -> Callable[[int], bytes]:
    return lambda other: lane_frame("end", peer=other, lane=5, count=number)


def test_both_ends_of_a_lane_that_is_over_are_forgotten_after_a_while() -> None:
    house, ann, bob = begun()
    pairs = house.lanes.talk.pairs
    ann.say(two_words(5)(bob.peer.number))
    assert len(pairs) == 1
    bob.say(two_words(0)(ann.peer.number))
    assert len(pairs) == 0
    bob.heard()
    # What comes late is still passed on.
    ann.say(lane_frame("switch", peers=[bob.peer.number], lanes=[5], numbers=[3]))
    assert names(bob.heard()) == ["switch"]
    house.tick(61)
    ann.say(lane_frame("switch", peers=[bob.peer.number], lanes=[5], numbers=[3]))
    assert "switch" not in names(bob.heard())


def test_an_offer_that_came_to_nothing_is_forgotten_after_a_while() -> None:
    house = LaneHouse()
    bob, ann = house.knowing("bob", HOT), house.knowing("ann")
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    accept(bob)
    assert len(house.lanes.talk.pairs) == 1
    ann.say(lane_frame("declined", HOT, reason=""))
    assert len(house.lanes.talk.pairs) == 0


def test_an_ok_that_is_wanted_by_a_word_about_lanes_is_given() -> None:
    house, ann, bob = begun()
    word = bytearray(lane_frame("switch", peers=[bob.peer.number], lanes=[5], numbers=[1]))
    word[5] |= ANSWER
    assert kinds(ann.say(bytes(word))) == [Kind.OK]
    assert names(bob.heard()) == ["switch"]
    assert house.service.refused == {}


def test_a_publisher_has_more_time_to_come_back_while_nobody_misses_anything() -> None:
    house, ann, _ = begun()
    eve = house.knowing("eve")
    house.lanes.settings = LaneSettings(enabled=False)
    house.tick()
    house.tick(20)
    assert not ann.peer.is_over
    assert eve.say(subscribe(HOT)) == []
    house.tick(2)
    assert eve.heard() == []
    house.tick()
    assert errors(ann.heard()) == ["TooSlow"]
    house.flush()
    assert kinds(eve.heard()) == [Kind.OK]
