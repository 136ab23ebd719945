"""Rate limits for wrong channel passwords.

Wrong tries are counted per channel and per place: the key of a connection, or, without keys, the
connection itself. A place waits only because of its own wrong tries, so that guessing never locks
a channel for a correct password. While a channel is being guessed at, every place has one free
try instead of five. A connection can be replaced by a new one with a free try, so for places that
are connections wrong tries at such a channel are also spaced, without ever adding up.
"""

from typing import NamedTuple, TypeVar

PLACE_FREE = 5
CHANNEL_FREE = 50
# Free tries of a place while a channel is being guessed at.
GUESSED_FREE = 1
WAIT_MAX_S = 60
# Without keys: least time between two wrong tries at a channel that is being guessed at.
SPACING_S = 0.2
# Wrong tries are forgotten after this time without another.
FORGET_S = 600
COUNTED_MAX = 65_536

_S = 1_000_000_000

Key = TypeVar("Key", str, bytes)


class TryOrigin(NamedTuple):
    """Origin of tries; `is_lasting` if reconnecting does not make a new one."""

    name: str
    is_lasting: bool


class FailedTries(NamedTuple):
    """Number of consecutive wrong tries, and time of the last one."""

    wrong: int
    last_ns: int


class Tries:
    """Wrong tries, by origin and by channel."""

    def __init__(self) -> None:
        self._places: dict[str, FailedTries] = {}
        self._channels: dict[bytes, FailedTries] = {}

    def wait_s(self, place: TryOrigin, name: bytes, now_ns: int) -> float:
        """Return how long an origin has to wait before it may try a channel; 0 if it may now."""
        channel = self._channels.get(name)
        if channel is None or channel.wrong < CHANNEL_FREE:
            return _wait_s(self._places.get(place.name), PLACE_FREE, now_ns)
        wait_s = _wait_s(self._places.get(place.name), GUESSED_FREE, now_ns)
        if place.is_lasting:
            return wait_s
        return max(wait_s, SPACING_S - (now_ns - channel.last_ns) / _S)

    def wrong(self, place: TryOrigin, name: bytes, now_ns: int) -> None:
        """Count a wrong try."""
        _count(self._places, place.name, now_ns)
        _count(self._channels, name, now_ns)

    def right(self, place: TryOrigin) -> None:
        """Forget the wrong tries of an origin after a correct one."""
        self._places.pop(place.name, None)

    def expire(self, now_ns: int) -> None:
        """Forget tries older than FORGET_S."""
        oldest_ns = now_ns - FORGET_S * _S
        self._places = {key: each for key, each in self._places.items() if each.last_ns > oldest_ns}
        self._channels = {
            key: each for key, each in self._channels.items() if each.last_ns > oldest_ns
        }


def _wait_s(count: FailedTries | None, free: int, now_ns: int) -> float:
    if count is None or count.wrong < free:
        return 0.0
    due_s = min(WAIT_MAX_S, 1 << min(count.wrong - free, 10))
    return max(0.0, due_s - (now_ns - count.last_ns) / _S)


def _count(counts: dict[Key, FailedTries], key: Key, now_ns: int) -> None:
    before = counts.pop(key, None)
    if len(counts) >= COUNTED_MAX:
        del counts[next(iter(counts))]
    counts[key] = FailedTries(1 if before is None else before.wrong + 1, now_ns)
