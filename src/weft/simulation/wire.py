"""One direction of a simulated connection: reliable and in order, like TCP.

While the direction is blocked, data and the close are delayed; they arrive when it is unblocked, if
both ends still exist. Undelivered data is lost with the end that would receive it.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from weft.simulation.clock import SECOND, Clock

# Send window: bytes in flight before the socket accepts no more.
WINDOW_BYTES = 256 << 10
_END = b""


class Pace(NamedTuple):
    """Delay, maximal jitter and bandwidth."""

    delay_ns: int
    jitter_ns: int
    bytes_per_s: int


class SimRandom(Protocol):
    """Source of randomness."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to less than `stop`."""


class WireReceiver(Protocol):
    """Receiving end of a wire."""

    def take(self, data: bytes) -> None:
        """Process received bytes."""

    def hang_up(self) -> None:
        """Handle a close by the other end."""


class Wire:
    """Bytes in flight in one direction."""

    def __init__(self, clock: Clock, chance: SimRandom, way: tuple[int, int], pace: Pace) -> None:
        self.way = way
        self.pace = pace
        self.receiver: WireReceiver | None = None
        # Checked before each arrival.
        self.is_cut: Callable[[tuple[int, int]], bool] = _never
        # Called when there is room again.
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
        """Whether more bytes can be sent."""
        return self._waiting_bytes < WINDOW_BYTES and not self.is_ended

    @property
    def is_over(self) -> bool:
        """Whether nothing will arrive any more."""
        return self.is_ended and not self._queue

    def send(self, data: bytes) -> None:
        """Queue bytes."""
        if not self.is_ended:
            self.sent_bytes += len(data)
            self._waiting_bytes += len(data)
            self._put(data)

    def end(self) -> None:
        """Close this end; the other end is notified after all queued bytes."""
        if not self.is_ended:
            self.is_ended = True
            self._put(_END)

    def swallow(self) -> None:
        """Drop everything in flight, and all that would follow."""
        self.is_ended = True
        self._queue.clear()
        self.receiver = None

    def go_on(self, delay_ns: int) -> None:
        """Resume after the direction was unblocked: delayed bytes arrive after a while."""
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
        """Note that the receiver has processed `count` bytes."""
        was_full = self._waiting_bytes >= WINDOW_BYTES
        self._waiting_bytes -= count
        if was_full and self.has_room and self.on_room is not None:
            self.on_room()


def _never(_: tuple[int, int]) -> bool:
    return False
