"""Replay buffer of a tunnel: sent datagrams until they are confirmed, and unsent ones.

Bounded in bytes and age. Messages are kept as whole frames, whose bytes all their receivers share;
other datagrams as they are, with a number of the tunnel. Sent datagrams are kept until the client
confirms them, or evicted when space is needed; a client that missed evicted ones gets a gap. Unsent
datagrams are never evicted: when the buffer is full, new ones are dropped and reported as a gap.
"""

from typing import Any, NamedTuple

from weft.wire.byteops import u32_at, u64_at
from weft.wire.frame_splitting import each_frame
from weft.wire.frames import Kind

# Approximate memory of an entry beside its bytes, and of a datagram other than a message.
KEPT_COST_BYTES = 120
OWN_COST_BYTES = 512

_MESSAGE = int(Kind.MESSAGE)
_OWN = "t."
_OWN_ORIGIN = -1
_LAST_MAX = 40


class Own(NamedTuple):
    """Datagram other than a message, numbered by its tunnel."""

    number: int
    datagram: dict[str, Any]

    @property
    def known_by(self) -> str:
        """The id of the datagram."""
        return f"{_OWN}{self.number}"


# Whole frames of messages, or one other datagram.
Item = bytes | Own
# Origin and sequence of a message; or _OWN_ORIGIN and the number of another datagram.
Identity = tuple[int, int]


class ReplayBuffer:
    """Bounded, ordered buffer of one tunnel."""

    __slots__ = ("_before", "_dropped", "_expired", "_gone", "_kept", "_number", "_sent", "_size")

    def __init__(self) -> None:
        # Entries with their times of arrival; the first `_sent` of them were sent.
        self._kept: list[tuple[Item, int]] = []
        self._sent = 0
        self._size = 0
        # Id of the datagram right before the first, and the number of all before it.
        self._before: Identity | None = None
        self._gone = 0
        # Numbers of unsent datagrams that were lost: expired at the front, dropped at the end.
        self._expired = 0
        self._dropped = 0
        self._number = 0

    @property
    def size(self) -> int:
        """Return the approximate memory in use, in bytes."""
        return self._size

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to send, not even a gap."""
        return not self._kept and not self._expired and not self._dropped

    def own(self, datagram: dict[str, Any]) -> Own:
        """Give the next number to a datagram other than a message."""
        self._number += 1
        return Own(self._number, datagram)

    def sent(self, item: Item, now_ns: int, limit_bytes: int) -> None:
        """Add a sent item; evict the oldest if it lacks space."""
        cost = _cost(item)
        while self._kept and self._size + cost > limit_bytes:
            self._forget(1)
        self._add(item, now_ns, cost)
        self._sent += 1
        if self._size > limit_bytes:
            self._forget(1)

    def wait(self, item: Item, now_ns: int, limit_bytes: int) -> None:
        """Add an unsent item, or count it as dropped if there is no space."""
        cost = _cost(item)
        if self._room(limit_bytes, cost):
            if self._dropped:
                self._announce_dropped(now_ns)
            self._add(item, now_ns, cost)
        elif isinstance(item, bytes) and u32_at(item, 0) < len(item):
            for frame in each_frame(item):
                self.wait(frame, now_ns, limit_bytes)
        else:
            self._dropped += 1

    def confirm(self, last: str) -> bool:
        """Remove everything up to a received id; return False if the id is unknown."""
        wanted = identity_of(last)
        if wanted is None:
            return False
        if wanted == self._before:
            return True
        for index, (item, time_ns) in enumerate(self._kept[: self._sent]):
            end = _end_of(item, wanted)
            if end == 0:
                continue
            self._forget(index)
            if isinstance(item, bytes) and end < len(item):
                rest = item[end:]
                self._gone += _count(item) - _count(rest)
                self._size -= end
                self._kept[0] = (rest, time_ns)
                self._before = wanted
            else:
                self._forget(1)
            return True
        return False

    def confirm_sent(self) -> None:
        """Remove everything that was sent: the client confirmed it by polling again."""
        self._forget(self._sent)

    def reset(self, last: str, now_ns: int) -> None:
        """Insert a gap at the front, for a client whose last id is unknown here."""
        count = self._gone
        wanted = identity_of(last)
        if wanted is not None and self._before is not None and wanted[0] == self._before[0]:
            # No more can have been missed than were numbered since.
            count = max(0, min(count, self._before[1] - wanted[1]))
        # The count includes expired datagrams.
        self._expired = 0
        self._put_first("reset", count, now_ns)

    def replay(self, now_ns: int) -> list[Item]:
        """Return all entries, with gaps for lost ones, and mark them as sent."""
        if self._expired:
            self._put_first("old", self._expired, now_ns)
            self._expired = 0
        if self._dropped:
            self._announce_dropped(now_ns)
        self._sent = len(self._kept)
        return [item for item, _ in self._kept]

    def expire(self, oldest_ns: int) -> None:
        """Remove entries older than a time; unsent ones are counted as expired."""
        while self._kept and self._kept[0][1] < oldest_ns:
            if self._sent == 0:
                item = self._kept[0][0]
                self._expired += _count(item) if isinstance(item, bytes) else 1
            self._forget(1)

    def _room(self, limit_bytes: int, cost: int) -> bool:
        """Evict sent entries, which probably arrived, until there is space."""
        while self._sent and self._size + cost > limit_bytes:
            self._forget(1)
        return self._size + cost <= limit_bytes

    def _announce_dropped(self, now_ns: int) -> None:
        self._add(self._gap("slow", self._dropped), now_ns, OWN_COST_BYTES)
        self._dropped = 0

    def _put_first(self, reason: str, count: int, now_ns: int) -> None:
        """Insert a gap at the front; it is merged with one of the same reason."""
        first = self._kept[0][0] if self._kept else b""
        if not isinstance(first, bytes):
            gap = first.datagram.get("gap", {})
            if gap.get("reason") == reason:
                # A client that reattaches repeatedly has still missed them only once.
                count = max(count, gap["count"]) if reason == "reset" else count + gap["count"]
                del self._kept[0]
                self._size -= OWN_COST_BYTES
                self._sent = max(0, self._sent - 1)
        self._kept.insert(0, (self._gap(reason, count), now_ns))
        self._size += OWN_COST_BYTES
        self._sent += 1

    def _gap(self, reason: str, count: int) -> Own:
        return self.own({"gap": {"reason": reason, "count": count}})

    def _add(self, item: Item, now_ns: int, cost: int) -> None:
        self._kept.append((item, now_ns))
        self._size += cost

    def _forget(self, count: int) -> None:
        """Remove the first `count` entries."""
        for item, _ in self._kept[:count]:
            self._size -= _cost(item)
            self._gone += _count(item) if isinstance(item, bytes) else 1
        if count:
            self._before = _last_in(self._kept[count - 1][0])
            del self._kept[:count]
            self._sent = max(0, self._sent - count)


def identity_of(text: str) -> Identity | None:
    """Return the parsed id of a datagram; None if it is not valid."""
    if len(text) > _LAST_MAX or not text.isascii():
        return None
    origin, _, number = text.partition(".")
    if not number.isdecimal():
        return None
    if origin == "t":
        return _OWN_ORIGIN, int(number)
    return (int(origin), int(number)) if origin.isdecimal() else None


def is_all_messages(frames: bytes) -> bool:
    """Return whether all frames are messages."""
    at = 0
    while at < len(frames):
        if frames[at + 4] != _MESSAGE:
            return False
        at += u32_at(frames, at)
    return True


def _cost(item: Item) -> int:
    return len(item) + KEPT_COST_BYTES if isinstance(item, bytes) else OWN_COST_BYTES


def _count(frames: bytes) -> int:
    count = at = 0
    while at < len(frames):
        count += 1
        at += u32_at(frames, at)
    return count


def _end_of(item: Item, wanted: Identity) -> int:
    """Return where the datagram with an id ends in an item; 0 if it is not in it."""
    if not isinstance(item, bytes):
        return 1 if wanted == (_OWN_ORIGIN, item.number) else 0
    origin, sequence = wanted
    at = 0
    while at < len(item):
        end = at + u32_at(item, at)
        if u64_at(item, at + 16) == sequence and u32_at(item, at + 8) == origin:
            return end
        at = end
    return 0


def _last_in(item: Item) -> Identity:
    if not isinstance(item, bytes):
        return _OWN_ORIGIN, item.number
    at = 0
    while (end := at + u32_at(item, at)) < len(item):
        at = end
    return u32_at(item, at + 8), u64_at(item, at + 16)
