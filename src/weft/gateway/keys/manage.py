"""Create, revoke and rotate the keys of a gateway.

The text of a key is returned once, when it is created; only its hash is stored.
"""

import secrets
import string
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from weft.broker.auth.keys import KeyRecord, Keyring, hash_of, key_text, ns
from weft.errors import BadOption, shortened
from weft.gateway.keys.admin_key import public_key_of
from weft.gateway.keys.key_file import Records, change_keys

_ID_CHARACTERS = string.ascii_lowercase + string.digits
_ID_LENGTH = 8
_SECRET_BYTES = 32


class MadeKey(NamedTuple):
    """A key, and its text, which only its owner may have."""

    record: KeyRecord
    text: str


def make_key(data: Path, wanted: KeyRecord) -> MadeKey:
    """Add a key like `wanted`, with a new id and secret.

    Raises:
        BadOption: Invalid key, or a key of its name is in use.
    """
    made = _made(wanted)

    def added(records: Records) -> Records:
        now = made.record.made
        if any(each.name == wanted.name and is_usable(each, now) for each in records):
            raise BadOption(
                f"a key named {shortened(wanted.name)} is in use: rotate or revoke it, or take"
                " another name"
            )
        return (*records, made.record)

    change_keys(data, added)
    return made


def revoke_keys(data: Path, which: str) -> list[KeyRecord]:
    """Revoke the key with an id, or all usable keys with a name; return the revoked keys.

    Raises:
        BadOption: There is no such key.
    """
    now = datetime.now(UTC)
    revoked: list[KeyRecord] = []

    def changed(records: Records) -> Records:
        found = _found(records, which, lambda record: record.revoked is None)
        revoked.extend(msgspec.structs.replace(each, revoked=now) for each in found)
        return _replaced(records, revoked)

    change_keys(data, changed)
    return revoked


def rotate_key(data: Path, which: str, overlap: timedelta) -> tuple[MadeKey, KeyRecord]:
    """Create a key with the permissions of another, which expires after the overlap; return both.

    Raises:
        BadOption: There is no such key in use.
    """
    now = datetime.now(UTC)
    result: list[tuple[MadeKey, KeyRecord]] = []

    def changed(records: Records) -> Records:
        # Other keys of this name were rotated before.
        old = max(_found(records, which, lambda each: is_usable(each, now)), key=_made_at)
        ends = now + overlap
        old = msgspec.structs.replace(old, expires=min(old.expires or ends, ends))
        made = _made(msgspec.structs.replace(old, expires=None))
        result.append((made, old))
        return (*_replaced(records, [old]), made.record)

    change_keys(data, changed)
    return result[0]


def is_usable(record: KeyRecord, now: datetime) -> bool:
    """Return whether a key is neither revoked nor expired."""
    return record.revoked is None and (record.expires is None or now < record.expires)


def new_record(name: str, role: str, service: str) -> KeyRecord:
    """Return a template for make_key(), with placeholders for id, hash and time."""
    return msgspec.convert(
        {
            "id": "0" * _ID_LENGTH,
            "name": name,
            "role": role,
            "service": service,
            "hash": hash_of(""),
            "made": datetime.now(UTC),
        },
        KeyRecord,
    )


def _made(wanted: KeyRecord) -> MadeKey:
    key_id = "".join(secrets.choice(_ID_CHARACTERS) for _ in range(_ID_LENGTH))
    text = key_text(key_id, secrets.token_urlsafe(_SECRET_BYTES))
    now = datetime.now(UTC)
    verifies = public_key_of(text) if wanted.role == "admin" else ""
    record = msgspec.structs.replace(
        wanted, id=key_id, hash=hash_of(text), made=now, verifies=verifies
    )
    if Keyring([record]).match(text, ns(now)) is None:
        raise BadOption(f"a key that expires at {record.expires} would never be accepted")
    return MadeKey(record, text)


def _found(records: Records, which: str, is_wanted: Callable[[KeyRecord], bool]) -> Records:
    """Return the keys with an id or a name that fulfil a condition.

    Raises:
        BadOption: There is none.
    """
    named = tuple(each for each in records if which in (each.id, each.name))
    found = tuple(filter(is_wanted, named))
    if not named:
        raise BadOption(f"there is no key with the id or name {shortened(which)}")
    if not found:
        raise BadOption(f"key {shortened(which)} is revoked or expired already")
    return found


def _replaced(records: Records, changed: list[KeyRecord]) -> Records:
    by_id = {each.id: each for each in changed}
    return tuple(by_id.get(each.id, each) for each in records)


def _made_at(record: KeyRecord) -> datetime:
    return record.made
