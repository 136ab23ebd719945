"""Tickets: each stands in for a key once, and not for long.

Whoever has shown a key at one door takes a ticket to another, where a key does not belong. Only
their hashes are kept. The text comes from outside: it must be one that nobody can guess.
"""

from hashlib import sha256

from weft.broker.auth.key_quota import Shares
from weft.broker.limits import Limits
from weft.errors import TooMany

TICKETS_MAX = 16_384
TICKET_LIFE_NS = 30_000_000_000


class Tickets:
    """The tickets of one service that nobody has used yet."""

    def __init__(self, limit: int = TICKETS_MAX, life_ns: int = TICKET_LIFE_NS) -> None:
        self._limit = limit
        self._life_ns = life_ns
        # By the hash of the text, the oldest first: the id of the key, and since when.
        self._made: dict[bytes, tuple[str, int]] = {}
        self._shares = Shares("unused tickets")

    def __len__(self) -> int:
        return len(self._made)

    def add(self, text: str, key_id: str, now_ns: int, limits: Limits) -> None:
        """Let a text stand for a key.

        Raises:
            TooMany: the key has its share of unused tickets, or there are too many of all keys.
        """
        self._drop_old(now_ns)
        self._shares.check(_holder(key_id), self._limit, limits)
        if len(self._made) >= self._limit:
            raise TooMany(f"{self._limit} tickets are unused, which is the limit")
        self._made[_hash(text)] = (key_id, now_ns)
        self._shares.add(_holder(key_id))

    def take(self, text: str, now_ns: int) -> str | None:
        """The id of the key that a text stands for, this once; None if it stands for none."""
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
    # Found by its hash, so how long it takes tells nothing of the texts that there are.
    return sha256(text.encode(errors="surrogatepass")).digest()
