import pytest
from tests.broker.talk import (
    ANSWER,
    ORIGIN,
    REQUEST,
    Guest,
    House,
    ask,
    connect,
    errors,
    fields,
    kinds,
    message,
    request,
    subscribe,
)

from weft.broker.limits import Limits
from weft.broker.system_requests import LIMIT, LIMIT_MAX, UNREAD_MAX_BYTES, status_facts
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message


def question(guest: Guest, about: bytes, body: bytes = b"\0\0\0\0", flags: int = REQUEST) -> bytes:
    return encode(Kind.MESSAGE, b"_WEFT.ask." + about, body, guest.inbox + b"ask", flags)


def test_an_answer_is_a_message_to_the_reply_from_nobody_in_particular() -> None:
    house = House()
    guest = house.guest()
    (answer,) = guest.say(question(guest, b"status"))
    assert (answer.kind, answer.subject, answer.reply) == (Kind.MESSAGE, guest.inbox + b"ask", b"")
    assert (answer.origin, answer.publisher, answer.sequence) == (ORIGIN, 0, 2)
    assert answer.time_ns == house.service.wall_ns


def test_a_question_that_wants_an_answer_gets_an_ok_of_its_own() -> None:
    guest = House().guest()
    heard = guest.say(question(guest, b"status", flags=REQUEST | ANSWER))
    assert kinds(heard) == [Kind.MESSAGE, Kind.OK]
    assert (heard[1].sequence, heard[1].publisher) == (1, guest.peer.number)


def test_a_question_that_is_not_known_is_refused() -> None:
    guest = House().guest()
    (error,) = guest.say(question(guest, b"weather"))
    assert errors([error]) == ["NotKnown"]
    assert "status, connections, subscriptions, subscribers, flows" in fields(error)["text"]


def test_the_status_is_the_service_in_numbers() -> None:
    house = House()
    guest = house.guest(b"", b"a")
    guest.say(*[message(b"a", b"x" * 67)] * 3, message(b"a..b"))
    status = ask(guest, "status")
    assert status["service"] == "weather"
    assert (status["connections"], status["subscriptions"]) == (1, 1)
    assert (status["messages_in"], status["deliveries"]) == (4, 3)
    assert status["bytes_in"] > 300
    assert status["message_rate"] > 0
    assert status["dropped"] == {"slow": 0, "old": 0, "conflated": 0}
    assert (status["refused"], status["ended"]) == ({"BadSubject": 1}, {})
    assert (status["slow_readers"], status["backlog_bytes"]) == (0, 0)
    assert status["arena_bytes"] == 2 * house.arena.size


def test_slow_readers_and_what_was_dropped_are_part_of_the_status() -> None:
    house = House(Limits(outbox_bytes=8 << 10))
    reader = house.guest()
    reader.say(subscribe(b"a", policy="drop_old"))
    reader.is_reading = False
    house.guest().say(*[message(b"a", b"x" * 900)] * 20)
    status = status_facts(house.service)
    assert status["slow_readers"] == 1
    assert 0 < status["backlog_bytes"] <= 8 << 10
    assert status["dropped"]["slow"] == reader.peer.outbox.dropped() > 0


@pytest.mark.req("HUB-5")
def test_registrations_are_looked_up_from_connection_to_subjects_and_back() -> None:
    house = House()
    one, other = house.guest(b"one", b"a.b", b"c.>"), house.guest(b"other")
    other.say(subscribe(b"a.*", b"workers", policy="latest", listen_only=True))
    listed = ask(one, "subscriptions", name="one")
    assert [row["pattern"] for row in listed["subscriptions"]] == ["a.b", "c.>"]
    assert ask(one, "subscriptions", connection=other.peer.number) == {
        "subscriptions": [
            {
                "connection": other.peer.number,
                "name": "other",
                "pattern": "a.*",
                "group": "workers",
                "policy": "latest",
                "listen_only": True,
            }
        ],
        "more": 0,
    }
    assert ask(one, "subscribers", subject="a.b") == {
        "subscribers": [
            {"connection": one.peer.number, "name": "one", "group": ""},
            {"connection": other.peer.number, "name": "other", "group": "workers"},
        ],
        "more": 0,
        "gateways": [],
    }
    assert ask(one, "subscribers", subject="nobody.wants") == {
        "subscribers": [],
        "more": 0,
        "gateways": [],
    }


def test_all_subscriptions_are_listed_up_to_the_limit_and_the_rest_is_counted() -> None:
    house = House()
    for patterns in ([b"a", b"b"], [], [b"c", b"d", b"e"], [b"f"]):
        house.guest(b"", *patterns)
    guest = house.guest()
    for limit in range(1, 9):
        listed = ask(guest, "subscriptions", limit=limit)
        assert [row["pattern"] for row in listed["subscriptions"]] == list("abcdef")[:limit]
        assert listed["more"] == max(0, 6 - limit)


def test_subscribers_are_listed_up_to_the_limit_and_the_rest_is_counted() -> None:
    house = House()
    guests = [house.guest(b"", b"a") for _ in range(3)]
    guests[0].say(subscribe(b"a", b"g"))
    listed = ask(guests[0], "subscribers", subject="a", limit=2)
    assert (len(listed["subscribers"]), listed["more"]) == (2, 2)


def test_connections_are_told_with_what_they_sent_and_are_owed() -> None:
    house = House()
    guest = house.guest()
    busy = house.guest(b"busy", b"a", b"b")
    busy.say(*[message(b"x", b"y" * 67)] * 5)
    guest.say(request(guest, b"a"))
    answer = ask(guest, "connections")
    assert answer["more"] == 0
    first, second = answer["connections"]
    assert (first["name"], first["number"]) == ("busy", busy.peer.number)
    assert (first["messages"], first["bytes"], first["subscriptions"]) == (5, 500, 2)
    assert first["byte_rate"] > second["byte_rate"]
    assert first["message_rate"] == pytest.approx(2.5)
    assert (first["unanswered"], first["dropped"], first["is_behind"]) == (1, 0, False)
    assert first["connected_ns"] == house.service.wall_ns
    assert second["owed_bytes"] == 0


def test_a_connection_that_sent_nothing_has_no_rate() -> None:
    house = House()
    quiet = house.guest()
    (facts,) = ask(house.guest(), "connections", connection=quiet.peer.number)["connections"]
    assert (facts["messages"], facts["message_rate"], facts["byte_rate"]) == (0, 0, 0)


def test_connections_are_the_busiest_first_and_the_rest_is_counted() -> None:
    house = House()
    for count in (1, 3, 2):
        house.guest(b"n%d" % count).say(*[message(b"a", b"x" * 500)] * count)
    answer = ask(house.guest(), "connections", limit=2)
    assert [facts["name"] for facts in answer["connections"]] == ["n3", "n2"]
    assert answer["more"] == 2


def test_connections_that_do_not_keep_up_come_before_the_busiest() -> None:
    house = House()
    slow, sender = house.guest(b"slow", b"a"), house.guest(b"sender")
    slow.is_reading = False
    sender.say(*[message(b"a")] * 10)
    first, *_ = ask(house.guest(), "connections")["connections"]
    assert (first["name"], first["is_behind"]) == ("slow", True)
    assert first["owed_bytes"] > 300


def test_who_was_not_greeted_is_not_told_of() -> None:
    house = House()
    stranger, guest = house.arrive(), house.guest()
    assert len(ask(guest, "connections")["connections"]) == 1
    assert ask(guest, "connections", connection=stranger.peer.number)["connections"] == []
    assert ask(guest, "connections", connection=99)["connections"] == []
    assert ask(guest, "connections", name="nobody")["connections"] == []


@pytest.mark.req("HUB-9")
def test_flows_are_told_by_connection_subject_and_rate() -> None:
    house = House()
    one, other = house.guest(b"one"), house.guest(b"other")
    one.say(*[message(b"a", b"x" * 1000)] * 5, message(b"b"))
    other.say(message(b"a"))
    busiest, *rest = ask(other, "flows")["flows"]
    assert (busiest["name"], busiest["subject"], busiest["messages"]) == ("one", "a", 5)
    assert busiest["first_ns"] == busiest["last_ns"] == house.service.wall_ns
    assert {(flow["name"], flow["subject"]) for flow in rest} == {
        ("one", "b"),
        ("other", "a"),
        ("other", "_WEFT"),
    }
    assert [flow["name"] for flow in ask(one, "flows", subject="a")["flows"]] == ["one", "other"]
    listed = ask(one, "flows", name="one", limit=1)
    assert (listed["flows"][0]["subject"], listed["more"]) == ("a", 2)


def test_flows_of_those_who_sent_nothing_are_none() -> None:
    house = House()
    quiet = house.guest()
    assert ask(house.guest(), "flows", connection=quiet.peer.number) == {"flows": [], "more": 0}


@pytest.mark.parametrize(
    ("about", "options", "error"),
    [
        ("connections", {"limit": 0}, "BadOption"),
        ("connections", {"limit": LIMIT_MAX + 1}, "BadOption"),
        ("connections", {"limit": "all"}, "WrongType"),
        ("subscriptions", {"limit": -1}, "BadOption"),
        ("subscriptions", {"connection": "one"}, "WrongType"),
        ("subscriptions", {"name": 1}, "WrongType"),
        ("subscribers", {}, "NoSuchField"),
        ("subscribers", {"subject": "a.*"}, "BadOption"),
        ("subscribers", {"subject": ""}, "BadOption"),
        ("subscribers", {"subject": "a", "limit": 0}, "BadOption"),
        ("flows", {"subject": 1}, "WrongType"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    about: str, options: dict[str, object], error: str
) -> None:
    guest = House().guest()
    assert ask(guest, about, **options)["name"] == error
    assert not guest.peer.is_over


def test_a_question_that_is_no_message_ends_the_connection() -> None:
    guest = House().guest()
    assert errors(guest.say(question(guest, b"flows", b"rubbish"))) == ["BadMessage"]
    assert guest.peer.is_over


def test_lists_are_bounded_if_nothing_is_said() -> None:
    house = House()
    guest = house.guest()
    guest.say(subscribe(patterns=[f"a.{number}" for number in range(LIMIT + 20)]))
    listed = ask(guest, "subscriptions")
    assert (len(listed["subscriptions"]), listed["more"]) == (LIMIT, 20)


def test_an_answer_over_the_body_limit_is_refused_and_not_sent() -> None:
    house = House(Limits(body_bytes=2000))
    for _ in range(20):
        house.arrive().say(connect(client="é" * 1000))
    guest = house.guest()
    assert ask(guest, "connections")["name"] == "BadOption"
    assert len(ask(guest, "connections", limit=2)["connections"]) == 2


def test_asking_much_of_a_large_service_over_and_over_ends_the_connection() -> None:
    house = House(Limits(control_burst=900, control_per_s=1))
    others = [house.guest() for _ in range(320)]
    guest = house.guest()
    for _ in range(2):
        assert len(ask(guest, "connections")["connections"]) == LIMIT
    assert ask(guest, "connections")["name"] == "ControlFlood"
    assert guest.peer.is_over
    assert not others[0].peer.is_over


def test_whoever_does_not_read_its_answers_gets_no_more_of_them() -> None:
    house = House()
    guest = house.guest()
    guest.say(subscribe(patterns=[f"a.{number}." + "x" * 100 for number in range(LIMIT_MAX)]))
    limit = Message(limit=LIMIT_MAX).encode()
    heard = guest.say(*[question(guest, b"subscriptions", limit)] * 50)
    answers = len(heard) - len(errors(heard))
    assert set(errors(heard)) == {"Overloaded"}
    assert sum(len(frame.body) for frame in heard[:answers]) < 2 * UNREAD_MAX_BYTES
    assert len(ask(guest, "subscriptions")["subscriptions"]) == LIMIT


def test_a_question_with_a_bare_body_is_one_without_options() -> None:
    guest = House().guest()
    (answer,) = guest.say(message(b"_WEFT.ask.connections", b"", guest.inbox + b"1", REQUEST))
    assert len(fields(answer)["connections"]) == 1


def test_what_is_answered_can_be_as_large_as_a_message() -> None:
    house = House()
    guest = house.guest()
    patterns = [f"a.{number}." + "x" * 100 for number in range(LIMIT_MAX)]
    guest.say(subscribe(patterns=patterns))
    listed = ask(guest, "subscriptions", limit=LIMIT_MAX)["subscriptions"]
    assert [row["pattern"] for row in listed] == patterns
