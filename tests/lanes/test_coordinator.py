"""From hot to direct: who is invited, what is offered, and why a route stays where it is."""

import pytest
from tests.broker.talk import Guest, bodies, message
from tests.lanes.lane_house import (
    HOT,
    LaneHouse,
    accept,
    go_direct,
    heat,
    make_hot,
    names,
    words,
)

from weft.errors import BadOption, NotAllowed, TooMany
from weft.lanes.route_state import KNOWN_MAX, LIVE_MAX, LIVE_PER_PEER_MAX, LaneRoutes, RouteState
from weft.lanes.settings import LaneRule
from weft.wire.frames import Kind, encode
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import KEY_BYTES, sign
from weft.wire.message.message import Message


def two(house: LaneHouse) -> tuple[Guest, Guest]:
    """A publisher and a receiver."""
    receiver = house.knowing("bob", HOT)
    return house.knowing("ann"), receiver


@pytest.mark.req("HUB-10")
def test_a_route_that_is_hot_for_long_enough_is_offered_with_its_whole_audience() -> None:
    house = LaneHouse()
    bob, eve = house.knowing("bob", HOT), house.knowing("eve", b"prices.>")
    ann = house.knowing("ann")
    heat(ann)
    house.tick()
    assert names(bob.heard()) == []
    assert house.reason(ann).endswith("over 1,000, not for long")
    make_hot(house, ann)
    invites = [accept(bob, 4001), accept(eve, 4002)]
    [offer] = words(ann.heard())
    assert (offer.word, offer.subject) == ("offer", HOT)
    assert "messages/s, over 1,000" in offer.facts["reason"]
    assert [each["receiver"] for each in offer.facts["lanes"]] == [
        bob.peer.number,
        eve.peer.number,
    ]
    for lane, invite, guest, port in zip(
        offer.facts["lanes"], invites, (bob, eve), (4001, 4002), strict=True
    ):
        assert lane["name"] == guest.peer.name
        assert (lane["address"], lane["unix"]) == (f"127.0.0.1:{port}", "")
        assert (lane["ticket"], lane["key"]) == (invite.facts["ticket"], invite.facts["key"])
        assert not lane["encrypt"]


def test_an_invitation_says_who_sends_and_has_the_key_of_its_ticket() -> None:
    house = LaneHouse()
    ann, bob = two(house)
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    [invite] = words(bob.heard())
    assert (invite.word, invite.subject) == ("invite", HOT)
    assert invite.facts["sender"] == ann.peer.number
    assert invite.facts["name"] == "ann"
    assert invite.facts["ttl_s"] == 10.0
    assert invite.facts["key"] == sign(house.service.secret, invite.facts["ticket"])
    assert len(invite.facts["key"]) == KEY_BYTES


@pytest.mark.req("HUB-11")
def test_what_crosses_the_threshold_is_delivered_through_the_gateway_once() -> None:
    house = LaneHouse()
    ann, bob = two(house)
    make_hot(house, ann)
    assert house.route(ann).state is RouteState.ASKED
    bob.heard()
    ann.say(message(HOT, b"crosses"))
    assert bodies(bob.heard()) == [b"crosses"]


@pytest.mark.req("HUB-12")
def test_another_sender_to_the_same_subject_stays_relayed() -> None:
    house = LaneHouse()
    ann, bob = two(house)
    dan = house.knowing("dan")
    dan.say(message(HOT))
    go_direct(house, ann, bob)
    house.tick()
    assert names(dan.heard()) == []
    assert house.reason(dan).startswith("relayed: below threshold: ")
    dan.say(message(HOT, b"relayed"))
    assert bodies(bob.heard()) == [b"relayed"]


@pytest.mark.req("HUB-13")
def test_who_ignores_offers_is_relayed_for_ever() -> None:
    house = LaneHouse()
    ann, bob = two(house)
    house.lanes.ask(ann.peer, HOT)
    told: list[str] = []
    for _ in range(130):
        house.tick()
        for word in words(bob.heard()):
            bob.say(lane_frame("ready", ticket=word.facts["ticket"], port=4000, unix=""))
        told += names(ann.say(message(HOT, b"still")))
        assert bodies(bob.heard())[-1:] == [b"still"]
    assert not ann.peer.is_over
    # 30 s after the first, 60 s after the second.
    assert told == ["offer", "withdraw"] * 3
    assert house.reason(ann) == "relayed: the publisher did not answer"


@pytest.mark.req("HUB-13")
def test_who_declines_is_relayed_and_asked_again_later_and_later() -> None:
    house = LaneHouse()
    ann, bob = two(house)
    house.lanes.ask(ann.peer, HOT)
    asked = []
    for second in range(200):
        house.flush()
        for word in words(bob.heard()):
            asked.append(second)
            bob.say(lane_frame("ready", ticket=word.facts["ticket"], port=4000, unix=""))
        if "offer" in names(ann.heard()):
            ann.say(lane_frame("declined", HOT, reason="no wish"))
        house.tick()
    assert asked == [0, 30, 90]
    assert house.reason(ann) == "relayed: the publisher declined: no wish"


def test_a_receiver_that_says_no_keeps_the_route_at_the_gateway() -> None:
    house = LaneHouse()
    ann, bob = two(house)
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    [invite] = words(bob.heard())
    bob.say(lane_frame("no", ticket=invite.facts["ticket"], reason="behind a wall"))
    assert house.reason(ann) == "relayed: receiver bob declined: behind a wall"
    assert names(ann.heard()) == ["withdraw"]


def test_a_receiver_that_says_nothing_keeps_the_route_at_the_gateway() -> None:
    house = LaneHouse()
    ann, bob = two(house)
    house.lanes.ask(ann.peer, HOT)
    house.tick(5)
    assert house.reason(ann) == "relayed: receiver bob did not answer"
    accept(bob)
    assert names(ann.heard()) == ["withdraw"]


def test_only_who_was_invited_can_accept() -> None:
    house = LaneHouse()
    ann, bob = two(house)
    eve = house.knowing("eve")
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    [invite] = words(bob.heard())
    eve.say(lane_frame("ready", ticket=invite.facts["ticket"], port=1, unix=""))
    eve.say(lane_frame("no", ticket=invite.facts["ticket"], reason="mine"))
    assert house.route(ann).state is RouteState.ASKED


def test_bytes_make_a_route_hot_too() -> None:
    house = LaneHouse(hold_s=0.5, bytes_s=100_000.0)
    ann, bob = two(house)
    for _ in range(2):
        ann.say(*[message(HOT, bytes(50_000)) for _ in range(10)])
        house.tick()
    assert "invite" in names(bob.heard())
    assert "bytes/s, over 100,000" in house.route(ann).reason


def test_the_first_rule_that_matches_says_when_a_route_is_hot() -> None:
    rules = (LaneRule(pattern="prices.*", messages_s=1, hold_s=0.1), LaneRule(pattern="prices.>"))
    house = LaneHouse(rules=rules)
    ann, bob = two(house)
    for _ in range(2):
        heat(ann, count=10)
        house.tick()
    assert "invite" in names(bob.heard())


def test_a_rule_keeps_subjects_at_the_gateway() -> None:
    house = LaneHouse(rules=(LaneRule(pattern="prices.>", enabled=False),))
    ann, bob = two(house)
    make_hot(house, ann)
    assert names(bob.heard()) == []
    assert house.reason(ann) == "relayed: lanes are off for this subject"
    assert house.lanes.ask(ann.peer, HOT).reason == "lanes are off for this subject"


def test_of_a_connection_with_many_flows_the_one_in_use_is_looked_at() -> None:
    house = LaneHouse(messages_s=1.0, hold_s=0.5)
    ann, bob = two(house)
    ann.say(*[message(b"x.%d" % number) for number in range(100)])
    ann.say(*[message(HOT) for _ in range(100)])
    house.tick()
    assert [route.subject for route in house.lanes.talk.routes] == [HOT]
    house.tick()
    assert "invite" in names(bob.heard())


def test_an_idle_connection_is_not_looked_at() -> None:
    house = LaneHouse(messages_s=0.001)
    ann, _ = two(house)
    ann.say(message(HOT))
    house.tick(3)
    assert len(house.lanes.talk.routes) == 0


def test_a_route_that_was_hot_is_forgotten_after_a_minute() -> None:
    house = LaneHouse()
    ann, _ = two(house)
    heat(ann)
    house.tick()
    assert len(house.lanes.talk.routes) == 1
    house.tick(10)
    assert house.reason(ann).startswith("relayed: below threshold")
    house.tick(60)
    assert len(house.lanes.talk.routes) == 0


def test_lanes_that_are_off_look_for_nothing() -> None:
    house = LaneHouse(enabled=False)
    ann, bob = two(house)
    make_hot(house, ann)
    assert names(bob.heard()) == []


def test_a_publisher_may_ask_and_then_its_rate_does_not_matter() -> None:
    house = LaneHouse()
    ann, bob = two(house)
    route = house.lanes.ask(ann.peer, HOT)
    assert (route.state, route.reason) == (RouteState.ASKED, "requested by its publisher")
    house.flush()
    accept(bob)
    ann.say(lane_frame("direct", HOT))
    for _ in range(30):
        house.tick()
    assert route.state is RouteState.DIRECT


def test_what_cannot_be_asked_for_is_refused() -> None:
    house = LaneHouse()
    ann, _ = two(house)
    with pytest.raises(BadOption):
        house.lanes.ask(ann.peer, b"a..b")
    for number in range(LIVE_PER_PEER_MAX):
        house.lanes.ask(ann.peer, b"x.%d" % number)
    with pytest.raises(TooMany):
        house.lanes.ask(ann.peer, HOT)
    house.lanes.settings = LaneHouse(ask=False).lanes.settings
    with pytest.raises(NotAllowed):
        house.lanes.ask(ann.peer, HOT)


def test_a_connection_has_so_many_direct_routes_and_no_more() -> None:
    house = LaneHouse(messages_s=0.001, hold_s=0.1)
    house.knowing("bob", b"x.>")
    ann = house.knowing("ann")
    for number in range(LIVE_PER_PEER_MAX):
        house.lanes.ask(ann.peer, b"x.%d" % number)
    for _ in range(2):
        ann.say(message(b"x.more"))
        house.tick()
    assert house.reason(ann, b"x.more") == (
        "relayed: 64 routes of this connection are on lanes, which is the limit"
    )


def test_a_service_has_so_many_live_routes_and_knows_so_many_others() -> None:
    house = LaneHouse()
    ann = house.knowing("ann").peer
    routes = LaneRoutes()
    for number in range(KNOWN_MAX):
        assert routes.begin(ann, b"%d" % number) is not None
    first = routes.get(ann.number, b"0")
    assert first is not None
    assert routes.begin(ann, b"another") is not None
    assert (len(routes), routes.get(ann.number, b"0")) == (KNOWN_MAX, None)
    for route in routes:
        routes.become(route, RouteState.ASKED, "")
    assert routes.begin(ann, b"one more") is None
    assert routes.no_room(ann).startswith(f"{KNOWN_MAX} routes are on lanes")
    assert LIVE_MAX < KNOWN_MAX


@pytest.mark.parametrize(
    "body",
    [
        Message(word="invite").encode(),
        Message(word="direct").encode(),
        Message(word="ready").encode(),
        Message(word="ready", ticket=b"", port=1, unix=5).encode(),
    ],
)
def test_words_that_a_client_cannot_say_are_refused(body: bytes) -> None:
    house = LaneHouse()
    ann, _ = two(house)
    heard = ann.say(encode(Kind.LANE, HOT, body))
    assert Kind.ERROR in [frame.kind for frame in heard]
    assert sum(house.service.refused.values()) == 1
    assert not ann.peer.is_over


@pytest.mark.parametrize("word", ["declined", "withdrawn"])
def test_what_is_said_of_a_route_that_nobody_knows_changes_nothing(word: str) -> None:
    house = LaneHouse()
    ann, _ = two(house)
    assert ann.say(lane_frame(word, b"unknown", reason="x")) == []
    assert len(house.lanes.talk.routes) == 0
