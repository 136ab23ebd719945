"""One direction of a connection: bytes arrive as they were sent, or not at all.

As with TCP nothing is lost in the middle. While a way is cut everything waits, the news of an end
included; when it is mended it goes on, if both ends are still there. What an end has yet to get is
lost with it.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from weft.simulation.clock import SECOND, Clock

# What a sender may have on its way; then its socket takes no more.
WINDOW_BYTES = 256 << 10
_END = b""


class Pace(NamedTuple):
    """How long bytes take: at least, by chance longer, and how many go in a second."""

    delay_ns: int
    jitter_ns: int
    bytes_per_s: int


class Chance(Protocol):
    """What decides by chance."""

    def randrange(self, stop: int, /) -> int:
        """A number from 0 to less than `stop`."""


class Receiver(Protocol):
    """Whoever is at the end of a wire."""

    def take(self, data: bytes) -> None:
        """Bytes arrive."""

    def hang_up(self) -> None:
        """Nothing more will: the other end closed."""


class Wire:
    """What is on its way from one end to the other."""

    def __init__(self, clock: Clock, chance: Chance, way: tuple[int, int], pace: Pace) -> None:
        self.way = way
        self.pace = pace
        self.receiver: Receiver | None = None
        # Asked each time when something is about to arrive.
        self.is_cut: Callable[[tuple[int, int]], bool] = _never
        # Told that there is room again.
        self.on_room: Callable[[], None] | None = None
        self.sent_bytes = 0
        self.is_ended = False
        self.is_stuck = False
        self._clock = clock
        self._chance = chance
        self._waiting_bytes = 0
        self._queue: deque[tuple[int, bytes]] = deque()
        self._is_due = False
        self._free_ns = 0
        self._last_ns = 0

    @property
    def has_room(self) -> bool:
        """Say if more may be sent."""
        return self._waiting_bytes < WINDOW_BYTES and not self.is_ended

    @property
    def is_over(self) -> bool:
        """Say if nothing will arrive any more."""
        return self.is_ended and not self._queue

    def send(self, data: bytes) -> None:
        """Send bytes after all that was sent before."""
        if not self.is_ended:
            self.sent_bytes += len(data)
            self._waiting_bytes += len(data)
            self._put(data)

    def end(self) -> None:
        """Close this end: the other learns of it after everything that was sent."""
        if not self.is_ended:
            self.is_ended = True
            self._put(_END)

    def swallow(self) -> None:
        """Lose everything that is on its way, and all that would be."""
        self.is_ended = True
        self._queue.clear()
        self.receiver = None

    def go_on(self, delay_ns: int) -> None:
        """The way is mended: what waited is sent again after a while."""
        if self.is_stuck:
            self.is_stuck = False
            self._last_ns = max(self._last_ns, self._clock.now_ns + delay_ns)
            self._queue = deque((max(time, self._last_ns), data) for time, data in self._queue)
            self._expect()

    def _put(self, data: bytes) -> None:
        now_ns = self._clock.now_ns
        pace = self.pace
        self._free_ns = max(self._free_ns, now_ns) + len(data) * SECOND // pace.bytes_per_s
        jitter_ns = self._chance.randrange(pace.jitter_ns) if pace.jitter_ns else 0
        self._last_ns = max(self._last_ns, self._free_ns + pace.delay_ns + jitter_ns)
        self._queue.append((self._last_ns, data))
        self._expect()

    def _expect(self) -> None:
        if self._queue and not self._is_due and not self.is_stuck:
            self._is_due = True
            self._clock.at(self._queue[0][0], self._arrive)

    def _arrive(self) -> None:
        self._is_due = False
        now_ns = self._clock.now_ns
        if self._queue and self.is_cut(self.way):
            self.is_stuck = True
            return
        while self._queue and self._queue[0][0] <= now_ns:
            _, data = self._queue.popleft()
            if self.receiver is None:
                continue
            if data:
                self.receiver.take(data)
            else:
                self.receiver.hang_up()
        self._expect()

    def took(self, count: int) -> None:
        """The receiver has dealt with so many bytes."""
        was_full = self._waiting_bytes >= WINDOW_BYTES
        self._waiting_bytes -= count
        if was_full and self.has_room and self.on_room is not None:
            self.on_room()


def _never(_: tuple[int, int]) -> bool:
    return False
