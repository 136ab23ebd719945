"""Time that passes only when everything that was due has been done."""

from collections.abc import Callable
from heapq import heappop, heappush

MS = 1_000_000
SECOND = 1_000_000_000


class Clock:
    """What is to be done, and when; things due at the same time are done as they were asked for."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._asked = 0

    def at(self, time_ns: int, act: Callable[[], None]) -> None:
        """Have something done at a time, or now if that is over."""
        self._asked += 1
        heappush(self._due, (max(time_ns, self.now_ns), self._asked, act))

    def after(self, delay_ns: int, act: Callable[[], None]) -> None:
        """Have something done after a while."""
        self.at(self.now_ns + delay_ns, act)

    def run(self, until_ns: int) -> None:
        """Let time pass, and do what is due."""
        due = self._due
        while due and due[0][0] <= until_ns:
            self.now_ns, _, act = heappop(due)
            act()
        self.now_ns = until_ns
