from typing import Any

import pytest
from tests.broker.talk import (
    ANSWER,
    ORIGIN,
    House,
    ask,
    bodies,
    connect,
    errors,
    fields,
    kinds,
    message,
    subscribe,
)

from weft.broker.auth.keys import Keyring
from weft.broker.handshake import is_name
from weft.broker.limits import Limits
from weft.errors import BadFrame
from weft.wire.frames import HEADER_BYTES, Frame, Kind, encode
from weft.wire.message.message import Message


def refusal(first: bytes, limits: Limits | None = None) -> Frame:
    """The error that a first frame is answered with; it must end the connection."""
    house = House(limits)
    guest = house.arrive()
    heard = guest.say(first)
    assert kinds(heard) == [Kind.ERROR]
    assert guest.peer.is_over
    assert not guest.peer.is_greeted
    assert guest.door.told == ["finish"]
    return heard[0]


@pytest.mark.req("HUB-3")
def test_a_proper_connect_is_welcomed_with_facts_about_the_gateway() -> None:
    house = House(Limits(body_bytes=5000, ping_s=12.5))
    guest = house.arrive()
    (welcome,) = guest.say(connect(name=b"me.1"))
    assert (welcome.kind, welcome.subject, welcome.reply) == (Kind.WELCOME, b"weather", b"me.1")
    assert (welcome.origin, welcome.publisher) == (ORIGIN, guest.peer.number)
    assert fields(welcome) == {
        "version": 1,
        "gateway": "london-1",
        "inbox": guest.inbox[:-1].decode(),
        "body_limit": 5000,
        "ping_s": 12.5,
    }
    assert len(guest.inbox[:-1]) == 40


@pytest.mark.req("HUB-1")
def test_a_client_announces_its_name_and_the_address_it_can_be_reached_on() -> None:
    house = House()
    guest = house.arrive()
    guest.say(connect(name=b"me.1", address="10.0.0.7:4000", client="python"))
    (known,) = ask(house.guest(), "connections", name="me.1")["connections"]
    assert (known["name"], known["address"], known["client"]) == ("me.1", "10.0.0.7:4000", "python")


def test_who_gives_no_name_is_given_one() -> None:
    house = House()
    names = [house.guest().peer.name for _ in range(3)]
    assert names == ["c.1", "c.2", "c.3"]


def test_every_inbox_is_another() -> None:
    house = House()
    inboxes = [house.guest().inbox for _ in range(100)]
    assert len(set(inboxes)) == 100


@pytest.mark.parametrize(
    "name",
    [
        b"a*",
        b"*",
        b"a.>",
        b"a..b",
        b"_INBOX.x",
        b"_x",
        b"a/b",
        b"\xff",
        b"a" * 60 + b"." + b"b" * 67,
    ],
)
def test_a_name_that_is_no_subject_of_at_most_127_bytes_is_refused(name: bytes) -> None:
    assert not is_name(name)
    assert errors([refusal(connect(name=name))]) == ["BadGreeting"]


def test_a_name_of_127_bytes_is_taken() -> None:
    house = House()
    assert house.guest(b"a" * 127).peer.name == "a" * 127


@pytest.mark.req("HUB-3")
@pytest.mark.parametrize("service", [b"other", b"", b"weathe", b"weather2", b"\xff"])
def test_another_service_than_this_is_refused_and_the_connection_ends(service: bytes) -> None:
    error = refusal(connect(service, b"me.1"))
    assert errors([error]) == ["NoSuchService"]
    assert (error.subject, error.reply, error.flags) == (service, b"me.1", 0)
    assert (fields(error)["number"], fields(error)["kind"]) == (4004, Kind.CONNECT)


@pytest.mark.req("MM-13")
def test_the_same_subject_in_two_services_never_mixes() -> None:
    weather, orders = House(), House(name="orders")
    listener = weather.guest(b"", b">")
    stranger = orders.arrive()
    stranger.say(connect(b"orders"), subscribe(b">"))
    assert bodies(stranger.say(message(b"a.b", b"of orders"))) == [b"of orders"]
    weather.flush()
    assert listener.heard() == []
    assert errors(weather.arrive().say(connect(b"orders"))) == ["NoSuchService"]


@pytest.mark.parametrize("kind", [0, *(set(Kind) - {Kind.CONNECT}), 12, 255])
def test_any_other_first_frame_is_a_bad_greeting(kind: int) -> None:
    error = refusal(encode(kind, b"weather"))
    assert errors([error]) == ["BadGreeting"]
    assert (error.flags, error.subject, fields(error)["kind"]) == (0, b"", 0)


def test_a_second_connect_ends_the_connection() -> None:
    guest = House().guest()
    assert errors(guest.say(connect())) == ["BadGreeting"]
    assert guest.peer.is_over


def test_two_connects_in_one_read_are_one_too_many() -> None:
    guest = House().arrive()
    heard = guest.say(connect(), connect())
    assert kinds(heard) == [Kind.WELCOME, Kind.ERROR]
    assert guest.peer.is_over


@pytest.mark.parametrize(
    "options",
    [
        {"version": 2},
        {"version": 0},
        {"version": "1"},
        {"version": 1.5},
        {"address": 7},
        {"client": True},
    ],
)
def test_options_that_are_not_as_they_should_be_are_refused(options: dict[str, Any]) -> None:
    assert errors([refusal(connect(**options))]) == ["BadGreeting"]


def test_the_version_spoken_here_is_taken_and_unknown_options_are_ignored() -> None:
    guest = House().arrive()
    assert kinds(guest.say(connect(version=1, later="whatever"))) == [Kind.WELCOME]


def test_a_body_that_is_not_a_message_ends_the_connection() -> None:
    assert errors([refusal(encode(Kind.CONNECT, b"weather", b"\1\0\0\0"))]) == ["BadMessage"]


def test_what_a_client_says_of_itself_is_kept_to_a_bound() -> None:
    guest = House().arrive()
    guest.say(connect(address="a" * 1000, client="é" * 1000))
    assert (guest.peer.address, guest.peer.client) == ("a" * 128, "é" * 128)


def test_a_greeting_may_have_4096_bytes_and_no_more() -> None:
    longest = 4096 - HEADER_BYTES - 510
    empty = Message(client="").encode()
    body = Message(client="x" * (longest - len(empty))).encode()
    assert kinds(House().arrive().say(encode(Kind.CONNECT, b"weather", body))) == [Kind.WELCOME]
    over = Message(client="x" * (longest - len(empty) + 1)).encode()
    assert errors([refusal(encode(Kind.CONNECT, b"weather", over))]) == ["FrameTooBig"]


def test_a_greeting_over_its_limit_is_refused_on_its_first_four_bytes() -> None:
    assert errors([refusal((4097).to_bytes(4, "little"))]) == ["FrameTooBig"]


def test_a_limit_that_leaves_no_room_for_options_still_lets_clients_in() -> None:
    house = House(Limits(greeting_bytes=100))
    assert kinds(house.arrive().say(connect())) == [Kind.WELCOME]
    assert errors([refusal(connect(version=1), Limits(greeting_bytes=100))]) == ["FrameTooBig"]


def test_what_follows_the_greeting_in_the_same_read_is_dealt_with() -> None:
    guest = House().arrive()
    large = b"x" * 10_000
    heard = guest.say(connect(), subscribe(b"a"), message(b"a", large), encode(Kind.PING))
    assert kinds(heard) == [Kind.WELCOME, Kind.OK, Kind.MESSAGE, Kind.PONG]
    assert bodies(heard) == [large]


def test_what_follows_a_refused_greeting_counts_for_nothing() -> None:
    house = House()
    guest = house.arrive()
    heard = guest.say(connect(b"other"), subscribe(b"a"), message(b"a"))
    assert errors(heard) == ["NoSuchService"]
    assert len(heard) == 1
    assert len(house.service.router) == 0


@pytest.mark.req("HUB-3")
def test_a_connect_that_wants_an_answer_gets_an_ok_as_well() -> None:
    (_, ok) = House().arrive().say(connect(name=b"me.1", flags=ANSWER))
    assert (ok.kind, ok.subject, ok.reply, ok.flags) == (Kind.OK, b"weather", b"me.1", ANSWER)
    (error,) = House().arrive().say(connect(b"other", flags=ANSWER))
    assert (error.kind, error.subject, error.flags) == (Kind.ERROR, b"other", ANSWER)


def test_the_body_limit_told_is_the_one_that_holds() -> None:
    house = House(Limits(body_bytes=5000))
    house.service.set_limits(Limits(body_bytes=1 << 20))
    (welcome,) = house.arrive().say(connect())
    assert fields(welcome)["body_limit"] == 5000
    assert errors(house.guest().say(message(b"a", b"x" * 5001))) == ["FrameTooBig"]


def test_a_decoy_answers_for_every_service_and_lets_nobody_in() -> None:
    house = House(name="")
    house.service.set_keys(Keyring(()))
    for service in (b"weather", b"orders"):
        (error,) = house.arrive().say(connect(service, key="any"))
        assert fields(error)["text"] == "the key is not accepted"


def test_one_who_comes_back_is_told_once_why_it_was_ended() -> None:
    house = House()
    ended, left = house.guest(), house.guest()
    ended.say(b"\0" * 8)
    left.say(encode(Kind.GOODBYE))
    heard = [
        fields(house.arrive().say(connect(was=was.decode()))[0])
        for was in (ended.inbox[:-1], ended.inbox[:-1], left.inbox[:-1], b"", b"guessed")
    ]
    assert heard[0]["ended"] == BadFrame.number
    assert "ended_text" in heard[0]
    assert ["ended" in each for each in heard[1:]] == [False] * 4
