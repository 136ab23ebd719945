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
    message,
    request,
    subscribe,
)

from weft.broker.auth.keys import KeyRecord, Keyring
from weft.broker.sweep import sweep
from weft.wire.frames import Frame, Kind


def rekey(house: House, *records: KeyRecord) -> None:
    """Let the house go by other keys from now on."""
    house.service.set_keys(Keyring(records))
    house.flush()
    house.flush()


def ending(guest: Guest) -> dict[str, object]:
    """What a guest that was ended is told last."""
    assert guest.peer.is_over
    return fields(guest.heard()[-1])


def taken_back(frames: list[Frame]) -> list[tuple[bytes, bytes, str]]:
    """The subscriptions that a guest was told it may no longer have."""
    assert all(fields(each)["kind"] == Kind.SUBSCRIBE for each in frames)
    return [(each.subject, each.reply, fields(each)["name"]) for each in frames]


def test_whoever_came_without_a_key_is_ended_when_keys_are_asked_for() -> None:
    house = House()
    guest = house.guest(b"me.1", b"a")
    rekey(house, record("one"))
    assert ending(guest) == {
        "number": 4006,
        "name": "BadKey",
        "text": "a key is needed",
        "kind": 0,
    }
    assert len(house.service.router) == 0
    assert guest.door.told == ["finish"]


@pytest.mark.parametrize(
    "after",
    [
        [],
        [record("one", revoked=datetime(2026, 2, 1, tzinfo=UTC))],
        [record("one", expires=datetime(2026, 2, 1, tzinfo=UTC))],
    ],
    ids=["gone", "revoked", "expired"],
)
def test_whoever_has_a_key_that_is_not_accepted_any_more_is_ended(after: list[KeyRecord]) -> None:
    house = locked(record("one"), record("two"))
    guest, other = enter(house, "one"), enter(house, "two")
    rekey(house, *after, record("two"))
    assert ending(guest)["text"] == "the key is not accepted"
    assert not other.peer.is_over
    assert house.service.refused == {"BadKey": 1}


def test_a_key_that_expires_ends_its_peers_with_the_next_sweep() -> None:
    expires = datetime.fromtimestamp(1_800_000_010, UTC)
    house = locked(record("one", expires=expires))
    guest = enter(house, "one")
    house.wait(9)
    sweep(house.service)
    assert not guest.peer.is_over
    house.wait(2)
    sweep(house.service)
    house.flush()
    assert ending(guest)["name"] == "BadKey"


def test_who_has_yet_to_greet_is_asked_for_the_new_keys() -> None:
    house = locked(record("one"))
    guest = house.arrive()
    rekey(house, record("two"))
    assert not guest.peer.is_over
    assert errors(guest.say(connect(key=key_of("one")))) == ["BadKey"]


def test_who_is_over_already_is_left_alone() -> None:
    house = House()
    guest = house.guest()
    guest.peer.end(None)
    rekey(house, record("one"))
    assert guest.heard() == []


def test_everyone_is_trusted_again_without_keys() -> None:
    house = locked(record("one", "client"))
    guest = enter(house, "one")
    house.service.set_keys(None)
    house.flush()
    assert (guest.peer.key, guest.peer.rights) == (None, None)
    assert errors(guest.say(message(b"a"), subscribe(b"a", flags=0))) == []


def test_other_rights_count_from_the_next_message_on() -> None:
    house = locked(record("one", publish=["a"]), record("two"))
    guest, hearer = enter(house, "one"), enter(house, "two")
    hearer.say(subscribe(b"*", flags=0))
    assert errors(guest.say(message(b"a", b"1"))) == []
    rekey(house, record("one", publish=["b"]), record("two"))
    assert errors(guest.say(message(b"a", b"2"))) == ["NotAllowed"]
    assert errors(guest.say(message(b"b", b"3"))) == []
    assert bodies(hearer.heard()) == [b"1", b"3"]


def test_subscriptions_that_are_not_allowed_any_more_are_taken_back_by_name() -> None:
    house = locked(record("one", subscribe=["a.>", "b"]), record("two"))
    guest = enter(house, "one")
    guest.say(
        subscribe(b"a.*", flags=0), subscribe(b"a.x", b"g", flags=0), subscribe(b"b", flags=0)
    )
    rekey(house, record("one", subscribe=["b"]), record("two"))
    assert taken_back(guest.heard()) == [
        (b"a.*", b"", "NotAllowed"),
        (b"a.x", b"g", "NotAllowed"),
    ]
    assert not guest.peer.is_over
    assert guest.peer.weight == 1
    enter(house, "two").say(message(b"a.x"), message(b"b", b"still"))
    assert bodies(guest.heard()) == [b"still"]


def test_who_may_serve_no_more_listens_on() -> None:
    house = locked(record("one", subscribe=["a", "b"], serve=["a", "b"]), record("two"))
    guest, asker = enter(house, "one"), enter(house, "two")
    guest.say(subscribe(b"a", flags=0), subscribe(b"b", flags=0, listen_only=True))
    rekey(house, record("one", subscribe=["a", "b"]), record("two"))
    assert errors(asker.say(request(asker, b"a"))) == ["NotKnown"]
    asker.say(message(b"a", b"heard"))
    assert bodies(guest.heard()) == [b"heard"]


def test_nothing_changes_for_those_whose_keys_did_not() -> None:
    house = locked(record("one", subscribe=["a"], publish=["a"]))
    guest = enter(house, "one")
    guest.say(subscribe(b"a", flags=0))
    rekey(house, record("one", subscribe=["a"], publish=["a"]), record("two"))
    assert bodies(guest.say(message(b"a", b"on"))) == [b"on"]


@pytest.mark.req("MID-17")
def test_what_a_service_enabled_ends_when_the_last_that_enabled_it_leaves() -> None:
    house = locked(record("serve1"), record("client", "client"))
    one, two, client = enter(house, "serve1"), enter(house, "serve1"), enter(house, "client")
    for service in (one, two):
        for right in ("publish", "subscribe"):
            assert ask(service, "enable", right=right, pattern="chat.room") == {}
    assert errors(client.say(message(b"chat.room"), subscribe(b"chat.room", flags=0))) == []
    one.peer.end(None)
    house.flush()
    assert errors(client.say(message(b"chat.room"))) == []
    client.heard()
    two.peer.end(None)
    house.flush()
    assert taken_back(client.heard()) == [(b"chat.room", b"", "NotAllowed")]
    assert errors(client.say(message(b"chat.room", flags=ANSWER))) == ["NotAllowed"]
    assert client.peer.weight == 0


@pytest.mark.parametrize(
    "after", [record("serve1", publish=["b"]), record("serve1", "client", publish=["a"])]
)
def test_what_a_service_may_no_longer_give_is_taken_from_clients(after: KeyRecord) -> None:
    house = locked(record("serve1"), record("client", "client"))
    service, client = enter(house, "serve1"), enter(house, "client")
    for right in ("publish", "subscribe"):
        ask(service, "enable", right=right, pattern="a")
    assert errors(client.say(message(b"a"), subscribe(b"a", flags=0))) == []
    rekey(house, after, record("client", "client"))
    assert taken_back(client.heard()) == [(b"a", b"", "NotAllowed")]
    assert errors(client.say(message(b"a"))) == ["NotAllowed"]
    assert service.peer.enabling == frozenset()
    assert not service.peer.is_over
