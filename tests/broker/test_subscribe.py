from typing import Any

import pytest
from tests.broker.talk import (
    ANSWER,
    Guest,
    House,
    ask,
    bodies,
    errors,
    fields,
    kinds,
    message,
    request,
    subscribe,
    unsubscribe,
)

from weft.broker.limits import Limits
from weft.broker.subscribe import weight_of
from weft.wire.frames import Frame, Kind
from weft.wire.message.message import Field


def subscriptions(guest: Guest) -> list[tuple[str, str, str, bool]]:
    """What the gateway says someone is subscribed to."""
    listed = ask(guest, "subscriptions", connection=guest.peer.number)["subscriptions"]
    return [(row["pattern"], row["group"], row["policy"], row["listen_only"]) for row in listed]


@pytest.mark.req("HUB-3")
def test_a_subscription_is_answered_with_an_ok_of_the_same_names() -> None:
    (ok,) = House().guest().say(subscribe(b"a.*", b"g"))
    assert ok == Frame(Kind.OK, ANSWER, b"a.*", b"g", b"")


def test_a_subscription_that_asks_for_no_answer_gets_none() -> None:
    guest = House().guest()
    assert guest.say(subscribe(b"a", flags=0), unsubscribe(b"a", flags=0)) == []


@pytest.mark.req("MM-16")
def test_what_is_subscribed_to_comes_until_it_is_taken_back() -> None:
    house = House()
    sender, guest = house.guest(), house.guest()
    sender.say(message(b"sensors.london.temp", b"too early"))
    guest.say(subscribe(b"sensors.*.temp"))
    sender.say(message(b"sensors.london.temp", b"1"), message(b"sensors.london.wind", b"2"))
    assert bodies(guest.heard()) == [b"1"]
    assert kinds(guest.say(unsubscribe(b"sensors.*.temp"))) == [Kind.OK]
    sender.say(message(b"sensors.london.temp", b"too late"))
    assert guest.heard() == []


@pytest.mark.req("HUB-4", "HUB-3")
def test_several_patterns_are_asked_for_in_one_frame_with_one_answer() -> None:
    guest = House().guest()
    assert kinds(guest.say(subscribe(b"a", patterns=["b.*", "c.>"]))) == [Kind.OK]
    assert [row[0] for row in subscriptions(guest)] == ["a", "b.*", "c.>"]
    assert kinds(guest.say(unsubscribe(patterns=["a", "c.>"]))) == [Kind.OK]
    assert [row[0] for row in subscriptions(guest)] == ["b.*"]


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("a..b", "BadSubject"),
        ("", "BadSubject"),
        ("_INBOX.>", "NotYours"),
        ("_x", "Reserved"),
        (7, "BadOption"),
    ],
)
def test_of_several_patterns_all_are_taken_or_none(pattern: object, error: str) -> None:
    house = House()
    guest = house.guest()
    heard = guest.say(subscribe(b"a", patterns=["b", pattern, "c"]))
    assert errors(heard) == [error]
    assert len(house.service.router) == 0
    assert guest.peer.weight == 0


@pytest.mark.parametrize(
    "frame",
    [
        subscribe(b""),
        subscribe(b"", patterns=[]),
        subscribe(b"a.>.b"),
        subscribe(b"abc*"),
        subscribe(b"a\0"),
        subscribe(b"\xff\xfe"),
        subscribe(b"a" * 128),
        subscribe(b"a", b"g.*"),
        subscribe(b"a", b"g" * 60 + b"." + b"g" * 67),
        subscribe(b"a", b"\xff"),
        unsubscribe(b"a..b"),
        unsubscribe(b"a", b"g..h"),
    ],
)
def test_a_pattern_or_group_that_is_not_legal_is_refused(frame: bytes) -> None:
    guest = House().guest()
    (error,) = guest.say(frame)
    assert errors([error]) == ["BadSubject"]
    assert len(fields(error)["text"]) <= 120
    assert not guest.peer.is_over


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"policy": "keep"}, "BadOption"),
        ({"policy": "CUT"}, "BadOption"),
        ({"policy": 3}, "WrongType"),
        ({"patterns": "b"}, "WrongType"),
        ({"patterns": [b"b"]}, "BadOption"),
        ({"listen_only": 1}, "WrongType"),
        ({"listen_only": Field.string("", "yes")}, "WrongType"),
    ],
)
def test_an_option_that_cannot_have_this_value_is_refused(
    options: dict[str, Any], error: str
) -> None:
    house = House()
    assert errors(house.guest().say(subscribe(b"a", **options))) == [error]
    assert len(house.service.router) == 0


def test_asking_again_changes_the_options() -> None:
    guest = House().guest()
    guest.say(subscribe(b"a"), subscribe(b"a", b"g"))
    assert subscriptions(guest) == [("a", "", "cut", False), ("a", "g", "cut", False)]
    guest.say(
        subscribe(b"a", policy="latest", listen_only=True), subscribe(b"a", b"g", policy="drop_old")
    )
    assert subscriptions(guest) == [("a", "", "latest", True), ("a", "g", "drop_old", False)]
    guest.say(subscribe(b"a", policy="drop_new"))
    assert subscriptions(guest) == [("a", "", "drop_new", False), ("a", "g", "drop_old", False)]
    assert guest.peer.weight == 2


def test_a_message_comes_once_however_many_patterns_match() -> None:
    guest = House().guest()
    guest.say(subscribe(b"a.b", patterns=["a.b", "a.*", ">", "*.b"]), subscribe(b"a.>"))
    assert bodies(guest.say(message(b"a.b", b"once"))) == [b"once"]


def test_taking_back_what_is_not_there_is_no_error() -> None:
    guest = House().guest()
    assert kinds(guest.say(unsubscribe(b"a"), unsubscribe(b"a", b"g"))) == [Kind.OK] * 2
    guest.say(subscribe(b"a"))
    assert kinds(guest.say(unsubscribe(b"a", b"g"))) == [Kind.OK]
    assert guest.peer.weight == 1


def test_of_a_queue_group_one_member_gets_each_message() -> None:
    house = House()
    members = [house.guest() for _ in range(3)]
    for guest, pattern in zip(members, (b"jobs.*", b"jobs.>", b"jobs.new"), strict=True):
        guest.say(subscribe(pattern, b"workers"))
    plain = house.guest(b"", b"jobs.new")
    house.guest().say(*[message(b"jobs.new", b"%d" % number) for number in range(9)])
    shares = [bodies(guest.heard()) for guest in members]
    assert [len(share) for share in shares] == [3, 3, 3]
    assert sorted(body for share in shares for body in share) == [
        b"%d" % number for number in range(9)
    ]
    assert len(bodies(plain.heard())) == 9


def test_everything_is_heard_only_of_what_is_not_reserved() -> None:
    house = House()
    guest = house.guest(b"", b">", b"*.x")
    house.guest().say(message(b"_LOCAL.x"))
    house.guest(b"newcomer")
    assert guest.heard() == []


@pytest.mark.parametrize("pattern", [b"_LOCAL.a", b"_LOCAL.>", b"_WEFT.event.*", b"_WEFT.>"])
def test_local_subjects_and_what_the_gateway_says_are_open_to_all(pattern: bytes) -> None:
    assert kinds(House().guest().say(subscribe(pattern))) == [Kind.OK]


@pytest.mark.parametrize("pattern", [b"_x", b"_INBOX", b"_LOCAL", b"_WEFT", b"_", b"_a.>"])
def test_reserved_subjects_are_refused(pattern: bytes) -> None:
    assert errors(House().guest().say(subscribe(pattern))) == ["Reserved"]


def test_nobody_but_its_owner_can_ask_for_an_inbox() -> None:
    house = House()
    owner, other = house.guest(), house.guest()
    for pattern in (owner.inbox + b">", owner.inbox + b"1", b"_INBOX.>", b"_INBOX.*.x"):
        assert errors(other.say(subscribe(pattern))) == ["NotYours"]
    assert len(house.service.router) == 0


def test_the_owner_need_not_ask_for_its_inbox_but_may() -> None:
    house = House()
    guest = house.guest()
    assert kinds(guest.say(subscribe(guest.inbox + b">", patterns=["a"]))) == [Kind.OK]
    assert kinds(guest.say(unsubscribe(guest.inbox + b">"))) == [Kind.OK]
    assert guest.peer.weight == 1
    assert bodies(guest.say(message(guest.inbox + b"1", b"note"))) == [b"note"]


@pytest.mark.parametrize(
    ("pattern", "weight"), [(b"a.b.c", 1), (b"a.*.c", 3), (b">", 1), (b"a.>", 2)]
)
def test_wildcards_weigh_as_much_as_they_have_elements(pattern: bytes, weight: int) -> None:
    assert weight_of(pattern) == weight


def test_subscriptions_over_the_limit_are_too_many() -> None:
    house = House(Limits(subscriptions=5))
    guest = house.guest()
    assert kinds(guest.say(subscribe(b"a.*.c"), subscribe(b"b"))) == [Kind.OK] * 2
    assert errors(guest.say(subscribe(b"c.*"))) == ["TooMany"]
    assert errors(guest.say(subscribe(patterns=["c", "d"]))) == ["TooMany"]
    assert kinds(guest.say(subscribe(b"c"))) == [Kind.OK]
    assert guest.peer.weight == 5


def test_what_is_taken_back_makes_room() -> None:
    guest = House(Limits(subscriptions=3)).guest()
    guest.say(subscribe(b"a.*.c"), unsubscribe(b"a.*.c"), unsubscribe(b"a.*.c"))
    assert guest.peer.weight == 0
    assert kinds(guest.say(subscribe(patterns=["a", "b", "c"]))) == [Kind.OK]


def test_options_can_be_changed_when_there_is_no_room_for_more() -> None:
    house = House(Limits(subscriptions=3))
    guest = house.guest(b"", b"a.*.c")
    assert kinds(guest.say(subscribe(b"a.*.c", policy="latest"))) == [Kind.OK]
    house.service.set_limits(Limits(subscriptions=1))
    assert kinds(guest.say(subscribe(b"a.*.c", policy="cut"))) == [Kind.OK]
    assert errors(guest.say(subscribe(b"b"))) == ["TooMany"]


def test_a_pattern_named_twice_weighs_once() -> None:
    guest = House(Limits(subscriptions=1)).guest()
    assert kinds(guest.say(subscribe(b"a", patterns=["a", "a"]))) == [Kind.OK]
    assert guest.peer.weight == 1


def test_one_who_only_listens_is_never_chosen_to_answer() -> None:
    house = House()
    listener, asker = house.guest(), house.guest()
    listener.say(subscribe(b"a", listen_only=True), subscribe(b"a.>", b"g", listen_only=True))
    assert errors(asker.say(request(asker, b"a"), request(asker, b"a.b", b"2"))) == ["NotKnown"] * 2
    asker.say(message(b"a", b"heard"))
    assert bodies(listener.heard()) == [b"heard"]
    listener.say(subscribe(b"a"))
    assert asker.say(request(asker, b"a", b"3")) == []
    assert bodies(listener.heard()) == [b"?"]
