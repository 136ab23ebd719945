"""How often passwords may be guessed: those who were wrong too often have to wait.

Counted for each channel and for each place that guesses come from: a key, or an address. A place
has few tries before it waits; a channel many, so that strangers cannot keep its members out.
"""

from typing import NamedTuple, TypeVar

PLACE_FREE = 5
CHANNEL_FREE = 50
WAIT_MAX_S = 60
# Who was not wrong for so long begins anew.
FORGET_S = 600
COUNTED_MAX = 65_536

_S = 1_000_000_000

Key = TypeVar("Key", str, bytes)


class Count(NamedTuple):
    """How often in a row, and when last."""

    wrong: int
    last_ns: int


class Tries:
    """Wrong tries by place and by channel."""

    def __init__(self) -> None:
        self._places: dict[str, Count] = {}
        self._channels: dict[bytes, Count] = {}

    def wait_s(self, place: str, name: bytes, now_ns: int) -> float:
        """How long a place has to wait before it may try a channel; 0 if it may now."""
        return max(
            _wait_s(self._places.get(place), PLACE_FREE, now_ns),
            _wait_s(self._channels.get(name), CHANNEL_FREE, now_ns),
        )

    def wrong(self, place: str, name: bytes, now_ns: int) -> None:
        """A try was wrong."""
        _count(self._places, place, now_ns)
        _count(self._channels, name, now_ns)

    def right(self, place: str) -> None:
        """A try was right."""
        self._places.pop(place, None)

    def expire(self, now_ns: int) -> None:
        """Forget what was long ago."""
        oldest_ns = now_ns - FORGET_S * _S
        self._places = {key: each for key, each in self._places.items() if each.last_ns > oldest_ns}
        self._channels = {
            key: each for key, each in self._channels.items() if each.last_ns > oldest_ns
        }


def _wait_s(count: Count | None, free: int, now_ns: int) -> float:
    if count is None or count.wrong < free:
        return 0.0
    due_s = min(WAIT_MAX_S, 1 << min(count.wrong - free, 10))
    return max(0.0, due_s - (now_ns - count.last_ns) / _S)


def _count(counts: dict[Key, Count], key: Key, now_ns: int) -> None:
    before = counts.pop(key, None)
    if len(counts) >= COUNTED_MAX:
        del counts[next(iter(counts))]
    counts[key] = Count(1 if before is None else before.wrong + 1, now_ns)
