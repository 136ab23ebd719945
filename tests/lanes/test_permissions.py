"""Rights hold on lanes as they do through the gateway."""

import pytest
from tests.broker.locksmith import key_of, record
from tests.broker.talk import Guest, connect, errors, kinds, subscribe
from tests.lanes.lane_house import HOT, LaneHouse, accept, go_direct, names, words

from weft.broker.auth.keys import KeyRecord, Keyring
from weft.lanes.route_state import RouteState
from weft.wire.frames import Flag, Kind, encode
from weft.wire.lane_messages import lane_frame


def locked(*records: KeyRecord) -> LaneHouse:
    house = LaneHouse()
    house.service.set_keys(Keyring(records))
    house.flush()
    return house


def enter(house: LaneHouse, name: str, *patterns: bytes) -> Guest:
    guest = house.arrive()
    guest.say(connect(name=name.encode(), lanes=1, key=key_of(name)), *map(subscribe, patterns))
    return guest


ALL = {"publish": ["prices.>"], "subscribe": ["prices.>"]}


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize(
    ("loser", "reason"),
    [
        ("ann", "ann may not publish to it any more"),
        ("bob", "bob may not subscribe to it any more"),
    ],
)
def test_a_revoked_right_closes_the_lane_at_once(loser: str, reason: str) -> None:
    house = locked(record("ann", **ALL), record("bob", **ALL))
    bob, ann = enter(house, "bob", HOT), enter(house, "ann")
    bob.heard()
    ann.heard()
    go_direct(house, ann, bob)
    records = {name: record(name, **ALL) for name in ("ann", "bob")}
    records[loser] = record(loser, publish=["other"], subscribe=["other"])
    house.service.set_keys(Keyring(list(records.values())))
    house.flush()
    assert names(ann.heard()) == ["withdraw", "over"]
    [over] = words(bob.heard())
    assert (over.word, over.facts) == (
        "over",
        {"peer": ann.peer.number, "reason": reason, "gone": False},
    )
    assert ann.say(lane_frame("switch", peers=[bob.peer.number], lanes=[5], numbers=[2])) == []
    assert words(bob.heard()) == []


@pytest.mark.req("HUB-21")
def test_a_right_that_is_lost_for_one_route_closes_the_lane_of_the_others_too() -> None:
    house = locked(record("ann", **ALL), record("bob", **ALL))
    bob, ann = enter(house, "bob", b"prices.>"), enter(house, "ann")
    for subject in (HOT, b"prices.slow"):
        house.lanes.ask(ann.peer, subject)
        house.flush()
        accept(bob)
        ann.say(lane_frame("direct", subject))
    house.lanes.ask(bob.peer, HOT)
    changed = record("ann", publish=["prices.slow"], subscribe=["prices.>"])
    house.service.set_keys(Keyring([changed, record("bob", **ALL)]))
    house.flush()
    states = {route.subject: route.state for route in house.lanes.talk.routes.of(ann.peer.number)}
    assert states == {HOT: RouteState.WITHDRAWING, b"prices.slow": RouteState.WITHDRAWING}
    assert len(house.lanes.talk.pairs) == 0


@pytest.mark.req("HUB-21")
def test_rights_that_change_for_others_leave_lanes_alone() -> None:
    house = locked(record("ann", **ALL), record("bob", **ALL))
    bob, ann = enter(house, "bob", HOT), enter(house, "ann")
    bob.heard()
    ann.heard()
    go_direct(house, ann, bob)
    house.service.set_keys(Keyring([record("ann", **ALL), record("bob", **ALL), record("eve")]))
    house.flush()
    assert house.route(ann).state is RouteState.DIRECT


def test_who_may_not_publish_to_a_subject_is_told_so() -> None:
    house = locked(record("ann", publish=["other"]), record("bob", **ALL))
    enter(house, "bob", HOT)
    ann = enter(house, "ann")
    route = house.lanes.talk.routes.begin(ann.peer, HOT)
    assert route is not None
    house.lanes.talk.promote(route, "hot")
    assert route.reason == "the publisher may not publish to it"


ASKS = {"publish": ["prices.>"], "request": ["prices.>"]}
SERVES = {"subscribe": ["prices.>"], "serve": ["prices.>"]}


def offered(house: LaneHouse) -> tuple[Guest, Guest, list[bool]]:
    """Ann and bob, and whether each was told that bob may be asked."""
    bob, ann = enter(house, "bob", HOT), enter(house, "ann")
    bob.heard()
    ann.heard()
    house.lanes.ask(ann.peer, HOT)
    house.flush()
    invite = accept(bob)
    [offer] = words(ann.heard())
    return ann, bob, [invite.facts["answers"], offer.facts["lanes"][0]["answers"]]


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize("may_ask", [True, False])
def test_only_whoever_may_request_is_told_that_it_may_ask(may_ask: bool) -> None:
    rights = ASKS if may_ask else {"publish": ["prices.>"]}
    house = locked(record("ann", **rights), record("bob", **SERVES))
    ann, bob, told = offered(house)
    assert told == [may_ask, may_ask]
    ann.say(lane_frame("direct", HOT))
    asked = bytearray(encode(Kind.TAIL, HOT, b"?", ann.peer.inbox + b"1", Flag.REQUEST))
    asked[8:12] = bob.peer.number.to_bytes(4, "little")
    assert errors(ann.say(bytes(asked))) == ([] if may_ask else ["NotAllowed"])
    assert (Kind.TAIL in kinds(bob.heard())) == may_ask


@pytest.mark.req("HUB-21")
def test_whoever_loses_the_right_to_request_comes_back() -> None:
    house = locked(record("ann", **ASKS), record("bob", **SERVES))
    ann, _, _ = offered(house)
    ann.say(lane_frame("direct", HOT))
    house.service.set_keys(Keyring([record("ann", publish=["prices.>"]), record("bob", **SERVES)]))
    house.flush()
    assert house.reason(ann) == "withdrawing: bob changed how it answers requests"
