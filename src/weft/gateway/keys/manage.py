"""Makes, revokes and rotates the keys of a gateway.

A key's text is given out once, when it is made; after that nobody can find it again.
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
    """A key, and the text that only its owner is to have."""

    record: KeyRecord
    text: str


def make_key(data: Path, wanted: KeyRecord) -> MadeKey:
    """Add a key like this one, with an id and a secret of its own.

    Raises:
        BadOption: it cannot be, or a key of its name is in use.
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
    """Revoke the key of an id, or all that have a name and are in use; these.

    Raises:
        BadOption: there is none.
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
    """Make a key with the rights of another, which expires after the overlap; both.

    Raises:
        BadOption: there is none that is in use.
    """
    now = datetime.now(UTC)
    result: list[tuple[MadeKey, KeyRecord]] = []

    def changed(records: Records) -> Records:
        # Of those that share a name, the others are on their way out already.
        old = max(_found(records, which, lambda each: is_usable(each, now)), key=_made_at)
        ends = now + overlap
        old = msgspec.structs.replace(old, expires=min(old.expires or ends, ends))
        made = _made(msgspec.structs.replace(old, expires=None))
        result.append((made, old))
        return (*_replaced(records, [old]), made.record)

    change_keys(data, changed)
    return result[0]


def is_usable(record: KeyRecord, now: datetime) -> bool:
    """Say if a key is neither revoked nor expired."""
    return record.revoked is None and (record.expires is None or now < record.expires)


def new_record(name: str, role: str, service: str) -> KeyRecord:
    """What a key to be made is like; its id, hash and time are yet to come."""
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
    """Those of an id or a name that are wanted.

    Raises:
        BadOption: there is none.
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
