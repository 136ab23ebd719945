"""Tickets: one-time substitutes for a key, valid for 30 s.

A client that authenticated with its key at one endpoint uses a ticket at another where a key must
not appear. Only hashes are stored. The caller generates the text, which must be unguessable.
"""

from hashlib import sha256

from weft.broker.auth.key_quota import KeyQuota
from weft.broker.limits import Limits
from weft.errors import TooMany

TICKETS_MAX = 16_384
TICKET_LIFE_NS = 30_000_000_000


class Tickets:
    """Unused tickets of one service."""

    def __init__(self, limit: int = TICKETS_MAX, life_ns: int = TICKET_LIFE_NS) -> None:
        self._limit = limit
        self._life_ns = life_ns
        # By the hash of the text, oldest first: id of the key, and time of issue.
        self._made: dict[bytes, tuple[str, int]] = {}
        self._shares = KeyQuota("unused tickets")

    def __len__(self) -> int:
        return len(self._made)

    def add(self, text: str, key_id: str, now_ns: int, limits: Limits) -> None:
        """Issue a ticket for a key.

        Raises:
            TooMany: the key has its share of unused tickets, or all keys have the limit together.
        """
        self._drop_old(now_ns)
        self._shares.check(_holder(key_id), self._limit, limits)
        if len(self._made) >= self._limit:
            raise TooMany(f"{self._limit} tickets are unused, which is the limit")
        self._made[_hash(text)] = (key_id, now_ns)
        self._shares.add(_holder(key_id))

    def take(self, text: str, now_ns: int) -> str | None:
        """Redeem a ticket: return the id of its key, or None if it is unknown, used or expired."""
        made = self._made.pop(_hash(text), None)
        if made is None:
            return None
        key_id, since_ns = made
        self._shares.add(_holder(key_id), -1)
        return key_id if now_ns - since_ns <= self._life_ns else None

    def _drop_old(self, now_ns: int) -> None:
        old: list[tuple[bytes, str]] = []
        for digest, (key_id, since_ns) in self._made.items():
            if now_ns - since_ns <= self._life_ns:
                break
            old.append((digest, key_id))
        for digest, key_id in old:
            del self._made[digest]
            self._shares.add(_holder(key_id), -1)


def _holder(key_id: str) -> str:
    return f"key {key_id}"


def _hash(text: str) -> bytes:
    # Looked up by hash, so that timing does not reveal anything about existing tickets.
    return sha256(text.encode(errors="surrogatepass")).digest()
