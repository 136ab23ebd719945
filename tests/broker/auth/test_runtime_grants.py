import pytest
from tests.broker.locksmith import enter, locked, record
from tests.broker.talk import (
    Guest,
    House,
    ask,
    bodies,
    errors,
    message,
    request,
    subscribe,
)

from weft.broker.limits import Limits


def enable(guest: Guest, right: str, pattern: str) -> str:
    """The name of the error that enabling gets; empty if it is done."""
    return str(ask(guest, "enable", right=right, pattern=pattern).get("name", ""))


def disable(guest: Guest, right: str, pattern: str) -> str:
    return str(ask(guest, "disable", right=right, pattern=pattern).get("name", ""))


def pair() -> tuple[Guest, Guest]:
    """A service and a client of one house."""
    house = locked(record("service"), record("client", "client"))
    return enter(house, "service"), enter(house, "client")


@pytest.mark.req("MID-12")
@pytest.mark.parametrize("right", ["publish", "subscribe", "request"])
def test_each_right_opens_one_deed_for_exactly_one_target(right: str) -> None:
    service, client = pair()
    service.say(subscribe(b"quotes.get", flags=0), subscribe(b"quotes.set", flags=0))
    assert enable(service, right, "quotes.get") == ""
    deeds = {
        "publish": message(b"quotes.get"),
        "subscribe": subscribe(b"quotes.get", flags=0),
        "request": request(client, b"quotes.get"),
    }
    for name, deed in deeds.items():
        assert errors(client.say(deed)) == ([] if name == right else ["NotAllowed"])
    assert errors(client.say(message(b"quotes.set"))) == ["NotAllowed"]


@pytest.mark.req("MID-13")
def test_a_client_that_enables_is_refused_and_nothing_is_enabled() -> None:
    _, client = pair()
    for right in ("publish", "subscribe", "request"):
        assert enable(client, right, "a") == "NotAllowed"
        assert disable(client, right, "a") == "NotAllowed"
    assert errors(client.say(message(b"a"))) == ["NotAllowed"]


@pytest.mark.req("MID-13")
def test_what_comes_before_it_is_enabled_is_refused_and_not_carried_out() -> None:
    service, client = pair()
    service.say(subscribe(b"a", flags=0))
    early = [message(b"a", b"early"), subscribe(b"a", flags=0), request(client, b"a")]
    assert errors(client.say(*early)) == ["NotAllowed"] * 3
    for right in ("publish", "subscribe", "request"):
        enable(service, right, "a")
    assert bodies(service.heard()) == []
    service.say(message(b"a", b"later"))
    assert client.heard() == []


def test_who_may_request_and_not_publish_may_do_one_after_the_other_was_tried() -> None:
    service, client = pair()
    service.say(subscribe(b"a", flags=0))
    enable(service, "request", "a")
    tried = [message(b"a"), request(client, b"a"), message(b"a"), message(b"a")]
    assert errors(client.say(*tried)) == ["NotAllowed"] * 2
    assert bodies(service.heard()) == [b"?"]
    enable(service, "publish", "a")
    assert errors(client.say(message(b"a", b"now"))) == []
    assert bodies(service.heard()) == [b"now"]


def test_who_may_publish_may_not_request_by_that() -> None:
    service, client = pair()
    service.say(subscribe(b"a", flags=0))
    enable(service, "publish", "a")
    tried = [message(b"a", b"1"), request(client, b"a"), message(b"a", b"2")]
    assert errors(client.say(*tried)) == ["NotAllowed"]
    assert bodies(service.heard()) == [b"1", b"2"]


def test_a_pattern_enables_all_that_it_covers() -> None:
    service, client = pair()
    enable(service, "publish", "chat.>")
    enable(service, "subscribe", "chat.*")
    assert errors(client.say(message(b"chat.a.b"), subscribe(b"chat.*", flags=0))) == []
    assert errors(client.say(subscribe(b"chat.>", flags=0))) == ["NotAllowed"]


def test_a_client_that_hears_does_not_serve() -> None:
    service, client = pair()
    enable(service, "subscribe", "a")
    client.say(subscribe(b"a", flags=0))
    assert errors(service.say(request(service, b"a"))) == ["NotKnown"]


@pytest.mark.req("MID-17")
def test_what_is_disabled_ends_for_those_who_have_it() -> None:
    service, client = pair()
    for right in ("publish", "subscribe"):
        enable(service, right, "a")
        enable(service, right, "b.*")
    assert errors(client.say(message(b"a"), subscribe(b"a", flags=0))) == []
    client.heard()
    for right in ("publish", "subscribe"):
        assert disable(service, right, "a") == ""
    assert errors(client.heard()) == ["NotAllowed"]
    assert errors(client.say(message(b"a"))) == ["NotAllowed"]
    assert errors(client.say(message(b"b.c"))) == []


def test_enabling_twice_and_disabling_what_is_not_are_no_errors() -> None:
    service, client = pair()
    assert [enable(service, "publish", "a"), enable(service, "publish", "a")] == ["", ""]
    assert [disable(service, "publish", "b"), disable(service, "publish", "a")] == ["", ""]
    assert disable(service, "publish", "a") == ""
    assert errors(client.say(message(b"a"))) == ["NotAllowed"]


def test_what_another_enabled_stays_when_one_disables_it() -> None:
    house = locked(record("service"), record("client", "client"))
    one, two, client = (enter(house, name) for name in ("service", "service", "client"))
    enable(one, "publish", "a")
    enable(two, "publish", "a")
    disable(one, "publish", "a")
    assert errors(client.say(message(b"a"))) == []


@pytest.mark.parametrize(
    ("right", "pattern", "error"),
    [
        ("serve", "a", "BadOption"),
        ("everything", "a", "BadOption"),
        ("publish", "a..b", "BadSubject"),
        ("publish", "_WEFT.ask.status", "Reserved"),
        ("subscribe", "_INBOX.>", "Reserved"),
    ],
)
def test_what_cannot_be_enabled_is_refused(right: str, pattern: str, error: str) -> None:
    service, _ = pair()
    assert enable(service, right, pattern) == error


def test_local_subjects_can_be_enabled() -> None:
    service, client = pair()
    assert enable(service, "publish", "_LOCAL.a") == ""
    assert errors(client.say(message(b"_LOCAL.a"))) == []


def test_a_service_gives_no_more_than_it_has_or_serves() -> None:
    limited = record("few", subscribe=["a.>"], serve=["a.>"], publish=["b"])
    house = locked(limited, record("client", "client"))
    service = enter(house, "few")
    assert enable(service, "publish", "b") == ""
    assert enable(service, "publish", "a.b") == "NotAllowed"
    assert enable(service, "subscribe", "a.*") == ""
    assert enable(service, "request", "a.b") == ""
    assert enable(service, "request", "b") == "NotAllowed"


def test_one_connection_can_enable_so_much_and_no_more() -> None:
    house = House(Limits(enabled=2))
    guest = house.guest()
    assert [enable(guest, "publish", name) for name in "abab"] == ["", "", "", ""]
    assert enable(guest, "publish", "c") == "TooMany"
    disable(guest, "publish", "a")
    assert enable(guest, "publish", "c") == ""


def test_an_admin_may_enable_and_so_may_anyone_where_there_are_no_keys() -> None:
    house = locked(record("boss", "admin"), record("client", "client"))
    assert enable(enter(house, "boss"), "publish", "a") == ""
    assert errors(enter(house, "client").say(message(b"a"))) == []
    assert enable(House().guest(), "publish", "a") == ""
