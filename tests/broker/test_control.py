import pytest
from tests.broker.talk import (
    ANSWER,
    House,
    bodies,
    connect,
    errors,
    fields,
    kinds,
    message,
    subscribe,
    unsubscribe,
)

from weft.broker.limits import Limits
from weft.wire.frames import Kind, encode


@pytest.mark.parametrize("body", [b"", b"x", b"y" * 64])
def test_a_ping_is_answered_by_a_pong_with_the_same_body(body: bytes) -> None:
    (pong,) = House().guest().say(encode(Kind.PING, body=body))
    assert (pong.kind, pong.body) == (Kind.PONG, body)


def test_a_pong_comes_after_everything_before_the_ping_was_dealt_with() -> None:
    guest = House().guest(b"", b"a")
    heard = guest.say(message(b"a"), subscribe(b"b"), encode(Kind.PING), message(b"b"))
    assert kinds(heard) == [Kind.MESSAGE, Kind.OK, Kind.PONG, Kind.MESSAGE]


def test_a_ping_over_64_bytes_is_refused_and_the_connection_goes_on() -> None:
    guest = House().guest()
    heard = guest.say(encode(Kind.PING, body=b"y" * 65), encode(Kind.PING))
    assert kinds(heard) == [Kind.ERROR, Kind.PONG]
    assert fields(heard[0])["number"] == 1000
    assert fields(heard[0])["kind"] == Kind.PING


def test_a_ping_that_wants_an_answer_gets_both() -> None:
    assert kinds(House().guest().say(encode(Kind.PING, flags=ANSWER))) == [Kind.PONG, Kind.OK]


def test_a_pong_is_taken_in_silence() -> None:
    house = House()
    assert house.guest().say(encode(Kind.PONG)) == []
    assert house.service.refused == {}


def test_who_says_goodbye_is_sent_what_it_is_owed_and_is_over() -> None:
    house = House()
    guest = house.guest(b"", b"a")
    house.guest().send(message(b"a", b"before"))
    heard = guest.say(encode(Kind.GOODBYE), message(b"a", b"after"))
    assert bodies(heard) == [b"before"]
    assert (guest.peer.is_over, guest.peer.error) == (True, None)
    assert guest.door.told == ["finish"]


def test_a_goodbye_that_wants_an_answer_gets_it() -> None:
    assert kinds(House().guest().say(encode(Kind.GOODBYE, flags=ANSWER))) == [Kind.OK]


@pytest.mark.parametrize("kind", [0, Kind.WELCOME, Kind.OK, Kind.ERROR, Kind.GAP, 12, 100, 255])
def test_a_kind_that_a_client_never_sends_ends_the_connection(kind: int) -> None:
    house = House()
    guest = house.guest()
    heard = guest.say(subscribe(b"a"), encode(kind, b"a"), subscribe(b"b"))
    assert kinds(heard) == [Kind.OK, Kind.ERROR]
    assert errors(heard) == ["UnexpectedFrame"]
    assert guest.peer.is_over
    assert len(house.service.router) == 0
    assert house.service.refused == {"UnexpectedFrame": 1}


def test_a_refused_frame_has_no_effect_and_the_connection_goes_on() -> None:
    house = House()
    guest = house.guest()
    heard = guest.say(subscribe(b"a..b"), subscribe(b"_x"), subscribe(b"c"))
    assert errors(heard) == ["BadSubject", "Reserved"]
    assert kinds(heard)[-1] == Kind.OK
    assert len(house.service.router) == 1
    assert house.service.refused == {"BadSubject": 1, "Reserved": 1}


def test_a_refusal_of_a_frame_that_did_not_ask_is_news_without_the_flag() -> None:
    (error,) = House().guest().say(subscribe(b"_x", b"g", flags=0))
    assert (error.subject, error.reply, error.flags) == (b"_x", b"g", 0)
    assert fields(error)["kind"] == Kind.SUBSCRIBE


def test_a_body_that_is_not_a_message_ends_the_connection() -> None:
    guest = House().guest()
    assert errors(guest.say(encode(Kind.SUBSCRIBE, b"a", b"rubbish"))) == ["BadMessage"]
    assert guest.peer.is_over


FEW = Limits(control_burst=10, control_per_s=5)


def test_more_control_frames_than_the_limit_at_once_end_the_connection() -> None:
    house = House(FEW)
    guest = house.guest()
    heard = guest.say(*[encode(Kind.PING)] * 10)
    assert kinds(heard) == [Kind.PONG] * 9 + [Kind.ERROR]
    assert errors(heard) == ["ControlFlood"]
    assert guest.peer.is_over


def test_time_restores_what_may_be_asked_up_to_the_burst() -> None:
    house = House(FEW)
    guest = house.guest()
    assert kinds(guest.say(*[encode(Kind.PING)] * 9)) == [Kind.PONG] * 9
    house.wait(1)
    assert kinds(guest.say(*[encode(Kind.PING)] * 5)) == [Kind.PONG] * 5
    house.wait(3600)
    assert kinds(guest.say(*[encode(Kind.PING)] * 10)) == [Kind.PONG] * 10
    assert errors(guest.say(encode(Kind.PING))) == ["ControlFlood"]


PATTERNS = [f"a.{number}" for number in range(8)]


@pytest.mark.parametrize("frame", [subscribe(patterns=PATTERNS), unsubscribe(patterns=PATTERNS)])
def test_each_of_many_patterns_in_one_frame_is_paid_for(frame: bytes) -> None:
    guest = House(FEW).guest()
    assert kinds(guest.say(frame)) == [Kind.OK]
    assert errors(guest.say(encode(Kind.PING))) == ["ControlFlood"]


def test_messages_are_not_bounded_by_the_control_limit() -> None:
    guest = House(FEW).guest(b"", b"a")
    assert len(guest.say(*[message(b"a")] * 1000)) == 1000


def test_a_flood_before_the_greeting_ends_there() -> None:
    guest = House(Limits(control_burst=0, control_per_s=1)).arrive()
    assert errors(guest.say(connect())) == ["ControlFlood"]
