"""What a tunnel was told and may have to be told again, and what waits while nobody is attached.

Bounded in bytes and age. Messages are kept as the frames that they came in, which all who were owed
the same share; everything else as its datagram, with a number of the tunnel's own. What was sent is
kept until its receipt is proven, or until it must give way: then whoever missed it is told of a
gap. What was not sent gives way to nobody: the newest are not taken in, and a gap says so.
"""

from typing import Any, NamedTuple

from weft.wire.byteops import u32_at, u64_at
from weft.wire.frame_splitting import each_frame
from weft.wire.frames import Kind

# What it takes to keep something beside its bytes, about; and one that is no message.
KEPT_COST_BYTES = 120
OWN_COST_BYTES = 512

_MESSAGE = int(Kind.MESSAGE)
_OWN = "t."
_OWN_ORIGIN = -1
_LAST_MAX = 40


class Own(NamedTuple):
    """A datagram that is no message: it has a number among those of its tunnel."""

    number: int
    datagram: dict[str, Any]

    @property
    def known_by(self) -> str:
        """Its id."""
        return f"{_OWN}{self.number}"


# Whole frames of messages, or one datagram of another kind.
Item = bytes | Own
# Origin and sequence of a message; or the number of one that is none.
Identity = tuple[int, int]


class Ring:
    """Bounded memory of one tunnel, in the order of what it holds."""

    __slots__ = ("_before", "_dropped", "_expired", "_gone", "_kept", "_number", "_sent", "_size")

    def __init__(self) -> None:
        # With the time when it came; the first `_sent` of them were sent.
        self._kept: list[tuple[Item, int]] = []
        self._sent = 0
        self._size = 0
        # What came right before the first, and how many were before it.
        self._before: Identity | None = None
        self._gone = 0
        # What was never sent, and is not here either: from the beginning, and from the end.
        self._expired = 0
        self._dropped = 0
        self._number = 0

    @property
    def size(self) -> int:
        """What it takes, in bytes, about."""
        return self._size

    @property
    def is_empty(self) -> bool:
        """Say if there is nothing to be told, not even of a loss."""
        return not self._kept and not self._expired and not self._dropped

    def own(self, datagram: dict[str, Any]) -> Own:
        """Give a number to a datagram that is no message."""
        self._number += 1
        return Own(self._number, datagram)

    def sent(self, item: Item, now_ns: int, limit_bytes: int) -> None:
        """Remember what was sent, as long as there is room for it."""
        cost = _cost(item)
        while self._kept and self._size + cost > limit_bytes:
            self._forget(1)
        self._add(item, now_ns, cost)
        self._sent += 1
        if self._size > limit_bytes:
            self._forget(1)

    def wait(self, item: Item, now_ns: int, limit_bytes: int) -> None:
        """Keep what cannot be sent now, or count it as lost if there is no room for it."""
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
        """Forget what is proven to have been received, up to an id; False if it is not known."""
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
        """Forget everything that was sent: whoever got it comes back for more."""
        self._forget(self._sent)

    def reset(self, last: str, now_ns: int) -> None:
        """Somebody received something that is not known here: put the news of it first."""
        count = self._gone
        wanted = identity_of(last)
        if wanted is not None and self._before is not None and wanted[0] == self._before[0]:
            # More cannot have been missed than were given a number since.
            count = max(0, min(count, self._before[1] - wanted[1]))
        # What waited too long is among them.
        self._expired = 0
        self._put_first("reset", count, now_ns)

    def replay(self, now_ns: int) -> list[Item]:
        """Everything that is to be told, with the news of what is lost; it counts as sent."""
        if self._expired:
            self._put_first("old", self._expired, now_ns)
            self._expired = 0
        if self._dropped:
            self._announce_dropped(now_ns)
        self._sent = len(self._kept)
        return [item for item, _ in self._kept]

    def expire(self, oldest_ns: int) -> None:
        """Forget what came before a time; what was not sent by then is lost."""
        while self._kept and self._kept[0][1] < oldest_ns:
            if self._sent == 0:
                item = self._kept[0][0]
                self._expired += _count(item) if isinstance(item, bytes) else 1
            self._forget(1)

    def _room(self, limit_bytes: int, cost: int) -> bool:
        """Make room by forgetting what was sent, which is likely to have arrived."""
        while self._sent and self._size + cost > limit_bytes:
            self._forget(1)
        return self._size + cost <= limit_bytes

    def _announce_dropped(self, now_ns: int) -> None:
        self._add(self._gap("slow", self._dropped), now_ns, OWN_COST_BYTES)
        self._dropped = 0

    def _put_first(self, reason: str, count: int, now_ns: int) -> None:
        """Put news of a loss before everything; of the same kind there is one at most."""
        first = self._kept[0][0] if self._kept else b""
        if not isinstance(first, bytes):
            gap = first.datagram.get("gap", {})
            if gap.get("reason") == reason:
                # However often somebody comes back, what it says does not become more.
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
        """Forget the first so many."""
        for item, _ in self._kept[:count]:
            self._size -= _cost(item)
            self._gone += _count(item) if isinstance(item, bytes) else 1
        if count:
            self._before = _last_in(self._kept[count - 1][0])
            del self._kept[:count]
            self._sent = max(0, self._sent - count)


def identity_of(text: str) -> Identity | None:
    """What an id says; None if no datagram has such an id."""
    if len(text) > _LAST_MAX or not text.isascii():
        return None
    origin, _, number = text.partition(".")
    if not number.isdecimal():
        return None
    if origin == "t":
        return _OWN_ORIGIN, int(number)
    return (int(origin), int(number)) if origin.isdecimal() else None


def is_all_messages(frames: bytes) -> bool:
    """Say if frames are messages, every one of them."""
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
    """Where the datagram that is wanted ends; 0 if it is not in there."""
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
