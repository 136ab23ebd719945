"""Virtual clock: time advances to the next scheduled event."""

from collections.abc import Callable
from heapq import heappop, heappush

MS = 1_000_000
SECOND = 1_000_000_000


class Clock:
    """Event queue; events at the same time run in the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._asked = 0

    def at(self, time_ns: int, act: Callable[[], None]) -> None:
        """Schedule an event at a time, or now if that has passed."""
        self._asked += 1
        heappush(self._due, (max(time_ns, self.now_ns), self._asked, act))

    def after(self, delay_ns: int, act: Callable[[], None]) -> None:
        """Schedule an event after a delay."""
        self.at(self.now_ns + delay_ns, act)

    def run(self, until_ns: int) -> None:
        """Run all events up to a time."""
        due = self._due
        while due and due[0][0] <= until_ns:
            self.now_ns, _, act = heappop(due)
            act()
        self.now_ns = until_ns
