"""What two ends of a lane say to each other through the gateway, in order; and what is counted."""

import pytest
from tests.broker.locksmith import key_of, record
from tests.broker.talk import Guest, bodies, connect, errors, fields, kinds, message, subscribe
from tests.lanes.lane_house import HOT, LaneHouse, go_direct, names, words

from weft.broker.auth.keys import Keyring
from weft.broker.disconnect import leave
from weft.broker.limits import Limits
from weft.broker.metering import PublisherTraffic
from weft.lanes.coordinator import COUNTED_MAX_S, begun_flow
from weft.wire.frames import Flag, Frame, Kind, encode
from weft.wire.lane_messages import lane_frame


def begun(limits: Limits | None = None) -> tuple[LaneHouse, Guest, Guest]:
    """A house with a route from ann to bob that is direct."""
    house = LaneHouse(limits)
    bob = house.knowing("bob", HOT)
    ann = house.knowing("ann")
    go_direct(house, ann, bob)
    return house, ann, bob


def tail(to: Guest, subject: bytes, body: bytes, reply: bytes = b"") -> bytes:
    """A message that a lane did not bring, with the sequence and time that it had there."""
    frame = bytearray(encode(Kind.TAIL, subject, body, reply))
    frame[8:12] = to.peer.number.to_bytes(4, "little")
    frame[16:24] = (2**63 + 5).to_bytes(8, "little")
    frame[24:32] = (77).to_bytes(8, "little")
    return bytes(frame)


def shown(frames: list[Frame]) -> list[str]:
    """What was heard, each by its word or body."""
    return [
        fields(each)["word"] if each.kind == Kind.LANE else each.body.decode() for each in frames
    ]


@pytest.mark.req("HUB-22")
def test_what_ends_say_comes_in_the_order_among_their_messages() -> None:
    _, ann, bob = begun()
    number = bob.peer.number
    ann.say(
        message(HOT, b"1"),
        lane_frame("switch", peers=[number], lanes=[5], numbers=[1]),
        message(HOT, b"2"),
        lane_frame("tail", **{"peer": number, "lane": 5, "from": 3}),  # type: ignore[arg-type]  # no subject
        tail(bob, HOT, b"3"),
        tail(bob, HOT, b"4"),
        message(HOT, b"5"),
        lane_frame("end", peer=number, lane=5, count=4),
        message(HOT, b"6"),
    )
    heard = bob.heard()
    assert shown(heard) == ["1", "switch", "2", "tail", "3", "4", "5", "end", "6"]
    told = words(heard)
    assert [each.facts for each in told] == [
        {"peer": ann.peer.number, "lane": 5, "number": 1},
        {"peer": ann.peer.number, "lane": 5, "from": 3},
        {"peer": ann.peer.number, "lane": 5, "count": 4},
    ]
    last = next(frame for frame in heard if frame.kind == Kind.TAIL)
    assert (last.origin, last.publisher) == (7, ann.peer.number)
    assert (last.sequence, last.time_ns) == (2**63 + 5, 77)


def test_a_switch_may_speak_of_several_lanes() -> None:
    house = LaneHouse()
    bob, eve = house.knowing("bob", HOT), house.knowing("eve", HOT)
    ann = house.knowing("ann")
    go_direct(house, ann, bob, eve)
    peers = [bob.peer.number, eve.peer.number]
    ann.say(lane_frame("switch", peers=peers, lanes=[5, 6], numbers=[1, 3]))
    assert [words(each.heard())[0].facts["number"] for each in (bob, eve)] == [1, 3]


@pytest.mark.parametrize(
    ("peers", "lanes", "numbers"),
    [
        ([1], [5], []),
        ([1], [], [1]),
        ([1] * 1025, [5] * 1025, [1] * 1025),
        (["1"], [5], [1]),
        ([1], [5.0], [1]),
        ([1], [5], [True]),
    ],
)
def test_a_switch_that_says_nothing_is_refused(
    peers: list[int], lanes: list[int], numbers: list[int]
) -> None:
    _, ann, _ = begun()
    word = lane_frame("switch", peers=peers, lanes=lanes, numbers=numbers)
    assert errors(ann.say(word)) == ["BadOption"]


@pytest.mark.req("HUB-21")
def test_two_without_a_lane_can_tell_each_other_nothing() -> None:
    house, ann, bob = begun()
    eve = house.knowing("eve")
    number = eve.peer.number
    for frame in (
        lane_frame("switch", peers=[number, 999], lanes=[5, 6], numbers=[1, 1]),
        lane_frame("tail", **{"peer": number, "lane": 5, "from": 1}),  # type: ignore[arg-type]  # no subject
        lane_frame("end", peer=number, lane=5, count=1),
        tail(eve, HOT, b"x"),
    ):
        for each in (ann, bob):
            # Whoever ends a lane need not wait for somebody who is not there.
            assert names(each.say(frame)) == (["over"] if b"count" in frame else [])
    assert eve.heard() == []
    # Twice over: a switch for two, a tail, an end and what would be of the tail.
    assert house.service.refused == {"NotKnown": 10}


def test_answers_come_back_by_the_same_way() -> None:
    _, ann, bob = begun()
    reply = ann.inbox + b"1"
    bob.say(
        lane_frame("switch", peers=[ann.peer.number], lanes=[5], numbers=[2]),
        tail(ann, reply, b"answer"),
    )
    assert shown(ann.heard()) == ["switch", "answer"]


def test_what_is_sent_to_one_that_is_over_goes_nowhere() -> None:
    _, ann, bob = begun()
    bob.peer.end(None)
    ann.send(tail(bob, HOT, b"x"))
    assert bob.peer.outbox.pending == 0


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        (b"a..b", "BadSubject"),
        (b"_WEFT.x", "NotAllowed"),
        (b"_INBOX.x", "NotAllowed"),
    ],
)
def test_a_tail_to_what_nobody_may_publish_to_is_refused(frame: bytes, name: str) -> None:
    _, ann, bob = begun()
    assert errors(ann.say(tail(bob, frame, b"x"))) == [name]
    assert bob.heard() == []


def test_a_tail_with_a_flag_of_the_gateway_is_refused() -> None:
    _, ann, bob = begun()
    forged = bytearray(tail(bob, HOT, b"x"))
    forged[5] = Flag.FROM_GATEWAY
    assert errors(ann.say(bytes(forged))) == ["UsageError"]
    assert bob.heard() == []


def test_a_tail_with_a_reply_in_the_inbox_of_another_is_refused() -> None:
    _, ann, bob = begun()
    assert errors(ann.say(tail(bob, HOT, b"x", bob.inbox + b"1"))) == ["NotYours"]
    ann.say(tail(bob, HOT, b"y", ann.inbox + b"1"))
    assert shown(bob.heard()) == ["y"]


@pytest.mark.req("HUB-21")
def test_a_tail_needs_the_right_to_publish() -> None:
    house = LaneHouse()
    every = {"publish": ["prices.>"], "subscribe": ["prices.>"]}
    house.service.set_keys(Keyring([record("ann", **every), record("bob", **every)]))
    house.flush()
    bob, ann = house.arrive(), house.arrive()
    bob.say(connect(name=b"bob", lanes=1, key=key_of("bob")), subscribe(HOT))
    ann.say(connect(name=b"ann", lanes=1, key=key_of("ann")))
    go_direct(house, ann, bob)
    assert errors(ann.say(tail(bob, b"secret", b"x"))) == ["NotAllowed"]
    assert errors(ann.say(tail(bob, HOT, b"x"))) == []
    assert shown(bob.heard()) == ["x"]


def counts(guest: Guest, *flows: object) -> list[str]:
    return errors(guest.say(lane_frame("counts", flows=list(flows))))


@pytest.mark.req("HUB-21")
def test_what_went_by_lanes_is_counted_as_if_it_went_through_the_gateway() -> None:
    house = LaneHouse()
    bob, eve = house.knowing("bob", HOT), house.knowing("eve", HOT)
    ann = house.knowing("ann")
    go_direct(house, ann, bob, eve)
    before = house.service.deliveries
    assert counts(ann, [HOT.decode(), 100, 5000]) == []
    assert ann.peer.meter is not None
    flow = ann.peer.meter.flow(HOT, house.service.now_ns)
    assert (flow.messages, flow.bytes) == (100, 5000)
    assert (house.service.total.messages, house.service.total.bytes) == (100, 5000)
    assert house.service.deliveries - before == 200
    assert house.service.flow_count == 1
    route = house.route(ann)
    assert (route.messages, route.bytes) == (100, 5000)


def test_what_is_counted_late_counts_and_what_is_counted_much_later_does_not() -> None:
    house, ann, _ = begun()
    ann.say(lane_frame("withdrawn", HOT))
    house.wait(5)
    assert counts(ann, [HOT.decode(), 1, 50]) == []
    house.wait(0.1)
    assert counts(ann, [HOT.decode(), 1, 50], ["never", 1, 50]) == []
    assert house.service.total.messages == 1
    assert house.service.refused == {"NotKnown": 2}


def test_more_than_can_be_is_not_counted() -> None:
    house, ann, _ = begun()
    assert counts(ann, [HOT.decode(), 10**15, 10**18]) == []
    assert house.service.total.messages == COUNTED_MAX_S
    assert house.service.refused == {"TooMany": 1}


@pytest.mark.parametrize(
    "flows",
    [
        [["a", -1, 0]],
        [["a", 0, -1]],
        [["a", 1]],
        ["a"],
        [["a", "1", 1]],
        [["a", 1, 1]] * 257,
    ],
)
def test_counts_that_are_none_are_refused(flows: list[object]) -> None:
    _, ann, _ = begun()
    assert counts(ann, *flows) == ["BadOption"]


def test_a_service_with_too_many_flows_counts_them_together() -> None:
    house = LaneHouse(Limits(flows=1))
    ann = house.knowing("ann").peer
    first = begun_flow(ann, b"a")
    assert isinstance(first, PublisherTraffic)
    assert begun_flow(ann, b"a") is first
    assert ann.meter is not None
    assert begun_flow(ann, b"b") is ann.meter.others


def test_whoever_has_lanes_with_one_that_is_over_is_told() -> None:
    house, ann, bob = begun()
    leave(ann.peer)
    house.flush()
    assert [each.facts for each in words(bob.heard())] == [
        {"peer": ann.peer.number, "reason": "ann is gone", "gone": True}
    ]
    assert len(house.lanes.talk.routes) == 0


def test_two_that_are_over_at_once_are_told_nothing() -> None:
    house, ann, bob = begun()
    leave(bob.peer)
    leave(ann.peer)
    house.flush()
    assert len(house.lanes.talk.pairs) == 0


def test_a_lane_that_is_closed_twice_is_closed_once() -> None:
    house, ann, bob = begun()
    for _ in range(2):
        house.lanes.talk.pairs.close(ann.peer, bob.peer, "enough")
    house.flush()
    assert names(ann.heard()) == names(bob.heard()) == ["over"]
    house.lanes.talk.pairs.use(ann.peer, bob.peer)
    assert len(house.lanes.talk.pairs) == 0


def test_messages_of_a_direct_route_that_come_through_the_gateway_are_delivered() -> None:
    _, ann, bob = begun()
    assert kinds(ann.say(message(HOT, b"x"))) == []
    assert bodies(bob.heard()) == [b"x"]
