"""Keys for tests: their texts and their records."""

from datetime import UTC, datetime
from typing import Any

from tests.broker.talk import Guest, House, connect

from weft.broker.auth.keys import Grant, KeyRecord, Keyring, hash_of, key_text

MADE = datetime(2026, 1, 31, 12, tzinfo=UTC)


def key_of(name: str) -> str:
    """The text of the key that tests call so."""
    return key_text(f"{name:0<8}"[:8], f"{name:x<43}")


def record(name: str, role: str = "service", /, **more: Any) -> KeyRecord:
    """The record of that key; rights as `publish=["a.>", "-a.secret"]`, a minus denies."""
    rights = {
        right: Grant(
            allow=tuple(each for each in more.pop(right) if not each.startswith("-")),
            deny=tuple(each[1:] for each in given if each.startswith("-")),
        )
        for right in ("publish", "subscribe", "request", "serve", "replay")
        if (given := more.get(right)) is not None
    }
    text = key_of(name)
    facts = {"service": "*" if role == "admin" else "weather", "made": MADE, "rights": rights}
    return KeyRecord(id=text[3:11], name=name, role=role, hash=hash_of(text), **{**facts, **more})  # type: ignore[arg-type]  # some are wrong on purpose


def locked(*records: KeyRecord) -> House:
    """A house that lets in only those who have one of these keys."""
    house = House()
    house.service.set_keys(Keyring(records))
    house.flush()
    return house


def enter(house: House, name: str) -> Guest:
    """Someone with the key of this name, who was greeted."""
    guest = house.arrive()
    guest.say(connect(key=key_of(name)))
    assert guest.peer.is_greeted
    return guest
