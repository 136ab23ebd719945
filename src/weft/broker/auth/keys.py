"""Keys: secrets that authenticate peers and select their role and permissions.

A key consists of `wk_`, an id of 8 characters, `_`, and a secret of 43. Only a hash of the whole
text is stored.
"""

import hmac
import re
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Literal

import msgspec

from weft.broker.auth.permissions import RIGHTS, Rule
from weft.errors import BadOption, BadSubject, shortened
from weft.wire.subjects import checked_pattern

Role = Literal["service", "client", "admin"]
RightName = Literal["publish", "subscribe", "request", "serve", "replay"]

ROLES: tuple[Role, ...] = ("service", "client", "admin")
ANY_SERVICE = "*"
KEY_NAME_MAX = 64
PATTERNS_MAX = 256

_KEY = re.compile(r"wk_([a-z0-9]{8})_[A-Za-z0-9_-]{43}")
_ID = re.compile(r"[a-z0-9]{8}")
_HASH = re.compile(r"[0-9a-f]{64}")
_SERVICE = re.compile(r"\*|[A-Za-z0-9-][A-Za-z0-9_-]{0,62}")
# Compared with the text of an unknown key, so that it takes as long as a known one.
_NOBODY = sha256(b"").hexdigest()


class Grant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Patterns that a key allows and denies for one right."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Key as it is stored: everything except the secret."""

    id: str
    name: str
    role: Role
    service: str
    hash: str
    made: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    rights: dict[RightName, Grant] = msgspec.field(default_factory=dict)
    # Of an admin: the public key that verifies its commands. Empty: it cannot send any.
    verifies: str = ""

    def is_for(self, service: str) -> bool:
        """Return whether the key is valid for a service."""
        return self.service in (ANY_SERVICE, service)

    def is_usable(self, wall_ns: int) -> bool:
        """Return whether the key is neither revoked nor expired at a time."""
        return self.revoked is None and (self.expires is None or wall_ns < ns(self.expires))


class Key:
    """Key with its rules compiled.

    Raises:
        BadOption: invalid record; the text names the key and the problem.
    """

    def __init__(self, record: KeyRecord) -> None:
        _check(record)
        self.record = record
        self.id = record.id
        self.name = record.name
        self.role = record.role
        self.is_client = record.role == "client"
        self.rules = _rules(record)

    def is_usable(self, wall_ns: int) -> bool:
        """Return whether the key is neither revoked nor expired at a time."""
        return self.record.is_usable(wall_ns)


class Keyring:
    """The keys of one service, by id.

    Raises:
        BadOption: invalid record, or two with the same id.
    """

    def __init__(self, records: Iterable[KeyRecord]) -> None:
        self._keys: dict[str, Key] = {}
        for record in records:
            key = Key(record)
            if key.id in self._keys:
                raise BadOption(f"two keys have the id {key.id!r}")
            self._keys[key.id] = key

    def __len__(self) -> int:
        return len(self._keys)

    def match(self, text: str, wall_ns: int) -> Key | None:
        """The key with this text, if it is known and usable at this time."""
        found = _KEY.fullmatch(text)
        key = self._keys.get(found[1]) if found is not None else None
        kept = _NOBODY if key is None else key.record.hash
        is_same = hmac.compare_digest(kept, hash_of(text))
        return key if key is not None and is_same and key.is_usable(wall_ns) else None

    def usable(self, key_id: str, wall_ns: int) -> Key | None:
        """The key with this id, if it is usable at this time."""
        key = self._keys.get(key_id)
        return key if key is not None and key.is_usable(wall_ns) else None


def key_text(key_id: str, secret: str) -> str:
    """The text of a key, which only its user gets."""
    return f"wk_{key_id}_{secret}"


def hash_of(text: str) -> str:
    """The stored hash of the text of a key."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def ns(moment: datetime) -> int:
    """Convert a datetime to ns since the epoch."""
    return round(moment.timestamp() * 1e6) * 1000


def _rules(record: KeyRecord) -> tuple[Rule, ...]:
    """The five rules of a key, in the order of RIGHTS.

    A service without any allowed pattern is allowed everything that it is not denied.
    """
    has_own = any(grant.allow for grant in record.rights.values())
    is_all = record.role == "admin" or (record.role == "service" and not has_own)
    empty = Grant()
    grants = [record.rights.get(right, empty) for right in RIGHTS]  # type: ignore[call-overload]  # RIGHTS holds the values of RightName
    return tuple(Rule(is_all, _patterns(grant.allow), _patterns(grant.deny)) for grant in grants)


def _patterns(names: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(name.encode() for name in names)


def _check(record: KeyRecord) -> None:
    if not _ID.fullmatch(record.id):
        raise BadOption(f"key id {shortened(record.id)} is not 8 lower-case letters and digits")
    problem = _problem(record)
    if problem:
        raise BadOption(f"key {record.id}: {problem}")
    patterns = [name for grant in record.rights.values() for name in grant.allow + grant.deny]
    if len(patterns) > PATTERNS_MAX:
        raise BadOption(f"key {record.id}: {len(patterns)} patterns are over {PATTERNS_MAX}")
    for pattern in patterns:
        try:
            checked_pattern(pattern)
        except BadSubject as error:
            raise BadOption(f"key {record.id}: {error}") from error


def _problem(record: KeyRecord) -> str:
    """Return the problem of a record, except for its patterns; empty if valid."""
    if not (0 < len(record.name) <= KEY_NAME_MAX and record.name.isprintable()):
        return f"name {shortened(record.name)} is not 1 to {KEY_NAME_MAX} printable characters"
    if not _SERVICE.fullmatch(record.service):
        return f"service {shortened(record.service)} is neither a valid service name nor '*'"
    if not _HASH.fullmatch(record.hash):
        return "its hash is not 64 hexadecimal digits"
    if any(each and each.tzinfo is None for each in (record.made, record.expires, record.revoked)):
        return "its times need a time zone, such as 2026-01-31T12:00:00Z"
    if record.verifies and not (record.role == "admin" and _HASH.fullmatch(record.verifies)):
        return "only an admin has a key that verifies, of 64 hexadecimal digits"
    if record.role == "admin" and (record.service != ANY_SERVICE or record.rights):
        return "an admin may do everything in every service: it has service '*' and no rights"
    return ""
