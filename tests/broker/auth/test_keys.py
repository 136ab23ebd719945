from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.locksmith import MADE, key_of, record

from weft.broker.auth.keys import Grant, Key, KeyRecord, Keyring, hash_of, key_text, ns
from weft.broker.auth.permissions import RIGHTS
from weft.errors import BadOption

NOW_NS = ns(MADE)


def test_a_key_is_found_by_its_text() -> None:
    keyring = Keyring([record("one"), record("two")])
    found = keyring.match(key_of("two"), NOW_NS)
    assert found is not None
    assert (found.name, found.id, len(keyring)) == ("two", "two00000", 2)


@given(st.text())
def test_no_other_text_is_a_key(text: str) -> None:
    assert Keyring([record("one")]).match(text, NOW_NS) is None


def test_the_right_id_with_another_secret_is_not_accepted() -> None:
    guessed = key_text("one00000", "A" * 43)
    assert Keyring([record("one")]).match(guessed, NOW_NS) is None


def test_a_key_ends_at_the_moment_it_expires() -> None:
    keyring = Keyring([record("one", expires=MADE + timedelta(seconds=1))])
    assert keyring.match(key_of("one"), NOW_NS + 999_999_999) is not None
    assert keyring.match(key_of("one"), NOW_NS + 1_000_000_000) is None
    assert keyring.usable("one00000", NOW_NS) is not None
    assert keyring.usable("one00000", NOW_NS + 1_000_000_000) is None


def test_a_revoked_key_is_not_accepted() -> None:
    keyring = Keyring([record("one", revoked=MADE)])
    assert keyring.match(key_of("one"), NOW_NS) is None
    assert keyring.usable("one00000", NOW_NS) is None
    assert keyring.usable("two00000", NOW_NS) is None


def test_a_key_opens_its_service_or_every_one() -> None:
    assert record("one").is_for("weather")
    assert not record("one").is_for("orders")
    assert record("one", "admin").is_for("orders")


@pytest.mark.req("MID-3")
def test_a_service_may_do_everything_and_a_client_nothing_by_itself() -> None:
    assert [rule.is_all for rule in Key(record("one", "service")).rules] == [True] * 5
    assert [rule.is_all for rule in Key(record("one", "admin")).rules] == [True] * 5
    client = Key(record("one", "client"))
    assert client.is_client
    assert [(rule.is_all, rule.allow) for rule in client.rules] == [(False, ())] * 5


def test_a_service_with_rights_of_its_own_has_only_these() -> None:
    key = Key(record("one", "service", publish=["a.>"]))
    assert [rule.is_all for rule in key.rules] == [False] * 5
    assert key.rules[0].allow == (b"a.>",)


def test_a_service_that_is_only_denied_something_may_do_the_rest() -> None:
    key = Key(record("one", "service", publish=["-a.>"]))
    assert [rule.is_all for rule in key.rules] == [True] * 5
    assert key.rules[0].deny == (b"a.>",)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"id": "ONE"}, "key id 'ONE' is not 8 lower-case"),
        ({"name": ""}, "name '' is not 1 to 64"),
        ({"name": "x" * 65}, "is not 1 to 64"),
        ({"name": "a\nb"}, "is not 1 to 64"),
        ({"service": "a b"}, "service 'a b' is neither a valid service name"),
        ({"hash": "ff"}, "its hash is not 64"),
        ({"verifies": "ab" * 32}, "only an admin has a key that verifies"),
        ({"role": "admin", "service": "*", "verifies": "ab"}, "of 64 hexadecimal digits"),
        ({"made": datetime(2026, 1, 31)}, "time zone"),  # that is the point
        ({"role": "admin"}, "service '\\*' and no rights"),
        ({"rights": {"publish": Grant(allow=("a..b",))}}, "element 2 is empty"),
        ({"rights": {"publish": Grant(deny=("a",) * 257)}}, "257 patterns are over 256"),
    ],
)
def test_a_record_that_cannot_be_is_refused(changes: dict[str, object], text: str) -> None:
    with pytest.raises(BadOption, match=text):
        Keyring([msgspec.structs.replace(record("one"), **changes)])


def test_two_keys_of_one_id_are_refused() -> None:
    with pytest.raises(BadOption, match="two keys have the id 'one00000'"):
        Keyring([record("one"), record("one")])


def test_a_record_survives_being_written() -> None:
    kept = record("one", "client", publish=["a"], expires=MADE)
    assert msgspec.json.decode(msgspec.json.encode(kept), type=KeyRecord) == kept
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=KeyRecord) == kept


def test_nothing_of_the_secret_is_kept() -> None:
    text = key_of("one")
    assert text[12:] not in msgspec.json.encode(record("one")).decode()
    assert hash_of(text) != text


def test_the_rights_of_a_record_are_those_of_the_core() -> None:
    rights = {name: Grant(allow=("a",)) for name in RIGHTS}
    assert len(Key(msgspec.structs.replace(record("one"), rights=rights)).rules) == len(RIGHTS)


def test_a_moment_is_exact_to_the_microsecond() -> None:
    assert ns(datetime(2026, 1, 31, 12, 0, 0, 7, tzinfo=UTC)) % 1_000_000_000 == 7000
