"""Tickets: each stands in for a key once, and not for long.

Whoever has shown a key at one door takes a ticket to another, where a key does not belong. Only
their hashes are kept. The text comes from outside: it must be one that nobody can guess.
"""

from hashlib import sha256

TICKETS_MAX = 4096
TICKET_LIFE_NS = 30_000_000_000


class Tickets:
    """The tickets of one service that nobody has used yet."""

    def __init__(self, limit: int = TICKETS_MAX, life_ns: int = TICKET_LIFE_NS) -> None:
        self._limit = limit
        self._life_ns = life_ns
        # By the hash of the text, the oldest first: the id of the key, and since when.
        self._made: dict[bytes, tuple[str, int]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def add(self, text: str, key_id: str, now_ns: int) -> None:
        """Let a text stand for a key; of too many, the oldest gives way."""
        self._drop_old(now_ns)
        if len(self._made) >= self._limit:
            del self._made[next(iter(self._made))]
        self._made[_hash(text)] = (key_id, now_ns)

    def take(self, text: str, now_ns: int) -> str | None:
        """The id of the key that a text stands for, this once; None if it stands for none."""
        key_id, since_ns = self._made.pop(_hash(text), (None, 0))
        return key_id if now_ns - since_ns <= self._life_ns else None

    def _drop_old(self, now_ns: int) -> None:
        for digest, (_, since_ns) in list(self._made.items()):
            if now_ns - since_ns <= self._life_ns:
                return
            del self._made[digest]


def _hash(text: str) -> bytes:
    # Found by its hash, so how long it takes tells nothing of the texts that there are.
    return sha256(text.encode(errors="surrogatepass")).digest()
