"""What keys mean for the verbs of a connection; each has a test file of its own beside this."""

from datetime import UTC, datetime

import pytest
from tests.broker.locksmith import enter, key_of, locked, record
from tests.broker.talk import (
    ANSWER,
    Guest,
    House,
    ask,
    bodies,
    connect,
    errors,
    fields,
    kinds,
    message,
    request,
    subscribe,
)

from weft.broker.auth.tickets import TICKET_LIFE_NS
from weft.wire.frames import Kind


def refused(first: bytes) -> dict[str, object]:
    """What a first frame is told by a house with keys; it must be the end."""
    house = locked(
        record("one"),
        record("past", expires=datetime(2026, 2, 1, tzinfo=UTC)),
        record("gone", revoked=datetime(2026, 2, 1, tzinfo=UTC)),
    )
    guest = house.arrive()
    heard = guest.say(first, message(b"a"), subscribe(b"a"))
    assert kinds(heard) == [Kind.ERROR]
    assert guest.peer.is_over
    assert house.service.total.messages == 0
    assert house.service.refused == {fields(heard[0])["name"]: 1}
    return fields(heard[0])


def test_who_has_a_key_is_welcome() -> None:
    house = locked(record("one"))
    guest = house.arrive()
    assert kinds(guest.say(connect(key=key_of("one")))) == [Kind.WELCOME]
    assert guest.peer.key is not None


def test_without_keys_whatever_is_shown_does_not_matter() -> None:
    guest = House().arrive()
    assert kinds(guest.say(connect(key="nonsense"))) == [Kind.WELCOME]
    assert guest.peer.key is None


@pytest.mark.parametrize("first", [connect(), connect(client="python"), connect(key="")])
def test_who_shows_no_key_is_told_that_one_is_needed(first: bytes) -> None:
    told = refused(first)
    assert (told["number"], told["text"]) == (4006, "a key is needed")


@pytest.mark.parametrize(
    "key",
    ["nonsense", key_of("other"), key_of("past"), key_of("gone"), key_of("one") + "x", "wk_" * 900],
)
def test_every_key_that_is_not_accepted_is_told_the_same(key: str) -> None:
    told = refused(connect(key=key))
    assert (told["number"], told["text"]) == (4006, "the key is not accepted")


def test_a_stranger_does_not_even_learn_what_else_is_wrong() -> None:
    assert refused(connect(key="x", version=99))["name"] == "BadKey"
    assert refused(connect(name=b"_bad", key="x"))["name"] == "BadKey"
    assert refused(connect(key=key_of("one"), version=99))["name"] == "BadGreeting"


def test_a_ticket_lets_in_once_with_the_rights_of_its_key() -> None:
    house = locked(record("one", "client", publish=["a"]))
    house.service.tickets.add("lucky", "one00000", house.service.now_ns, house.service.limits)
    guest = house.arrive()
    assert kinds(guest.say(connect(ticket="lucky"))) == [Kind.WELCOME]
    assert errors(guest.say(message(b"a"), message(b"b"))) == ["NotAllowed"]
    again = house.arrive()
    text = fields(again.say(connect(ticket="lucky"))[0])["text"]
    assert text == "the ticket is not accepted: it is good for one connection within 30 s"


def test_a_ticket_is_no_better_than_its_key() -> None:
    house = locked(record("gone", revoked=datetime(2026, 2, 1, tzinfo=UTC)), record("one"))
    now_ns = house.service.now_ns
    house.service.tickets.add("a", "gone0000", now_ns, house.service.limits)
    house.service.tickets.add("b", "one00000", now_ns - TICKET_LIFE_NS - 1, house.service.limits)
    for ticket in ("a", "b", "c"):
        assert errors(house.arrive().say(connect(ticket=ticket))) == ["BadKey"]


def test_a_key_and_a_ticket_exclude_each_other() -> None:
    assert refused(connect(key=key_of("one"), ticket="lucky"))["name"] == "BadGreeting"


@pytest.mark.req("MID-3")
def test_a_service_may_do_everything() -> None:
    house = locked(record("one"))
    guest = enter(house, "one")
    deeds = [
        subscribe(b">", flags=0),
        subscribe(b"_LOCAL.>", flags=0),
        subscribe(b"_WEFT.event.>", flags=0),
        message(b"a.b", b"1"),
        message(b"_LOCAL.a", b"2"),
        request(guest, b"a.b"),
    ]
    heard = guest.say(*deeds)
    assert errors(heard) == []
    assert bodies(heard) == [b"1", b"2", b"?"]


@pytest.mark.req("MID-3")
def test_a_client_may_do_nothing_that_was_not_given_to_it() -> None:
    house = locked(record("one", "client"), record("two"))
    guest, other = enter(house, "one"), enter(house, "two")
    other.say(subscribe(b">", flags=0))
    tried = [message(b"a"), request(guest, b"a"), subscribe(b"a", flags=0), message(b"_LOCAL.a")]
    assert errors(guest.say(*tried)) == ["NotAllowed"] * 4
    assert other.heard() == []
    assert len(house.service.router) == 1


def test_a_refusal_names_the_deed_and_the_subject_and_not_the_rules() -> None:
    house = locked(record("one", publish=["a.>", "-a.secret"]))
    guest = enter(house, "one")
    (told,) = guest.say(message(b"a.secret", flags=ANSWER))
    assert (told.subject, fields(told)["text"]) == (
        b"a.secret",
        "this connection may not publish to 'a.secret'",
    )
    (told,) = guest.say(request(guest, b"b"))
    assert fields(told)["text"] == "this connection may not request 'b'"


def test_messages_to_what_is_denied_reach_nobody_and_others_do() -> None:
    house = locked(record("one", publish=["a.>", "-a.secret"]), record("two"))
    guest, hearer = enter(house, "one"), enter(house, "two")
    hearer.say(subscribe(b">", flags=0))
    sent = [message(b"a.b", b"1"), message(b"a.secret", b"2"), message(b"a.b", b"3"), message(b"c")]
    assert errors(guest.say(*sent)) == ["NotAllowed"] * 2
    assert bodies(hearer.heard()) == [b"1", b"3"]


def test_a_subject_that_is_not_legal_is_that_and_no_matter_of_rights() -> None:
    house = locked(record("one", "client", publish=["a"]))
    guest = enter(house, "one")
    assert errors(guest.say(message(b"a..b"), message(b""), message(b"*"))) == ["BadSubject"] * 3


def test_a_client_that_was_asked_may_answer_and_no_other_may() -> None:
    worker = record("worker", "client", subscribe=["jobs"], serve=["jobs"])
    house = locked(worker, record("two"), record("three", "client"))
    guest, asker, other = (enter(house, name) for name in ("worker", "two", "three"))
    guest.say(subscribe(b"jobs", flags=0))
    asker.say(request(asker, b"jobs"))
    assert errors(other.say(message(asker.inbox + b"1", b"forged"))) == ["NotYours"]
    assert errors(guest.say(message(asker.inbox + b"1", b"done"))) == []
    assert bodies(asker.heard()) == [b"done"]


def test_a_reply_subject_is_one_that_its_sender_may_publish_to() -> None:
    house = locked(record("one", publish=["a", "mine.>"]), record("two"))
    guest, hearer = enter(house, "one"), enter(house, "two")
    hearer.say(subscribe(b"a", flags=0))
    for reply in (guest.inbox + b"1", b"mine.1"):
        assert errors(guest.say(message(b"a", reply=reply))) == []
    for reply in (b"yours.1", b"_LOCAL.x"):
        assert errors(guest.say(message(b"a", reply=reply))) == ["NotAllowed"]
    assert errors(guest.say(message(b"a", reply=hearer.inbox + b"1"))) == ["NotYours"]
    assert len(hearer.heard()) == 2


def heard_by(guest: Guest, *patterns: bytes, group: bytes = b"") -> list[str]:
    return errors(guest.say(*(subscribe(pattern, group, flags=0) for pattern in patterns)))


def test_a_subscription_lies_inside_one_allowed_pattern_and_touches_no_denied_one() -> None:
    rights = ["a.>", "b.*", "c.x", "c.y", "-a.secret.>"]
    guest = enter(locked(record("one", subscribe=rights)), "one")
    assert heard_by(guest, b"a.b", b"a.*.c", b"b.*", b"c.x") == ["NotAllowed"]
    assert heard_by(guest, b"a.b", b"a.*", b"b.*", b"c.x") == []
    assert heard_by(guest, b">", b"a.>", b"b.>", b"c.*", b"a.secret.x") == ["NotAllowed"] * 5


@pytest.mark.parametrize("group", [b"", b"workers"])
def test_everything_with_a_deny_inside_cannot_be_heard(group: bytes) -> None:
    guest = enter(locked(record("one", subscribe=["-secret"])), "one")
    assert heard_by(guest, b">", b"secret", b"*", group=group) == ["NotAllowed"] * 3
    assert heard_by(guest, b"open.>", group=group) == []


def test_of_one_frame_all_patterns_are_allowed_or_none() -> None:
    house = locked(record("one", subscribe=["a", "b"]))
    guest = enter(house, "one")
    assert errors(guest.say(subscribe(b"a", patterns=["b", "c"]))) == ["NotAllowed"]
    assert len(house.service.router) == 0


@pytest.mark.parametrize("group", [b"", b"workers"])
def test_who_may_hear_and_not_serve_is_never_chosen_to_answer(group: bytes) -> None:
    house = locked(record("one", subscribe=["a"]), record("two"))
    guest, asker = enter(house, "one"), enter(house, "two")
    guest.say(subscribe(b"a", group, flags=0))
    assert errors(asker.say(request(asker, b"a"))) == ["NotKnown"]
    asker.say(message(b"a", b"news"))
    assert bodies(guest.heard()) == [b"news"]


def test_what_the_gateway_says_and_answers_is_not_for_clients() -> None:
    everything = {right: [">", "_LOCAL.>", "_WEFT.>"] for right in ("publish", "subscribe")}
    house = locked(record("one", "client", **everything), record("two", subscribe=["a"]))
    client, service = enter(house, "one"), enter(house, "two")
    assert heard_by(client, b"_WEFT.>", b"_WEFT.event.connected") == ["NotAllowed"] * 2
    assert heard_by(service, b"_WEFT.event.>") == []
    for question in ("status", "connections", "subscriptions", "flows", "subscribers"):
        assert ask(client, question, subject="a")["name"] == "NotAllowed"
        assert "name" not in ask(service, question, subject="a")


def test_news_of_the_gateway_can_be_denied() -> None:
    guest = enter(locked(record("one", subscribe=["-_WEFT.>"])), "one")
    assert heard_by(guest, b"_WEFT.event.>") == ["NotAllowed"]


def test_nobody_hears_the_inbox_of_another_whatever_the_key() -> None:
    house = locked(record("boss", "admin"))
    guest, other = enter(house, "boss"), enter(house, "boss")
    assert heard_by(guest, b"_INBOX.>", other.inbox + b"1") == ["NotYours"] * 2


def test_the_facts_about_a_connection_name_its_key_and_role() -> None:
    house = locked(record("one"))
    (facts,) = ask(enter(house, "one"), "connections")["connections"]
    assert (facts["key"], facts["role"]) == ("one", "service")
    (facts,) = ask(House().guest(), "connections")["connections"]
    assert (facts["key"], facts["role"]) == ("", "")
