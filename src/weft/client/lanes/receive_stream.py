"""Receive stream of a lane: merges the relayed and the direct path in order.

Pure. A peer's messages arrive in alternating segments: through the gateway, through the lane,
through the gateway … Segment 0 is the gateway's. Both paths carry every path switch, so that
messages that arrive early wait for the other path. A lane that ends is completed through the
gateway: with its unacknowledged items and their total number.
"""

from collections import deque
from collections.abc import Callable, Iterable

from weft.errors import ProtocolError

# Consecutive frames with the same flags and subject.
Run = list[bytes]


class LaneEnded:
    """Last item of a lane: the total number of items."""

    def __init__(self, count: int) -> None:
        self.count = count


class Unheard:
    """Items that count, but are not delivered."""

    def __init__(self, count: int) -> None:
        self.count = count


# An entry of a queue: messages, a path switch, or undelivered items.
Item = Run | int | Unheard

# Overhead of a held entry, added to its bytes.
_WAITING_BYTES = 64


class In:
    """Stream of one peer over both paths; methods return the messages to deliver now.

    After the end, released() returns the messages held until then.
    """

    def __init__(self) -> None:
        # The current segment: even ones arrive through the gateway.
        self.current = 0
        # Number of lane items that were taken.
        self.taken = 0
        self.is_over = False
        # Number of items that will not arrive, and whether an unknown number may be missing, too.
        self.missing = 0
        self.is_cut_short = False
        # Bytes held of messages from the gateway.
        self.held_bytes = 0
        self._released: list[list[Run]] = [[]]
        self._by_gateway: deque[Item | LaneEnded] = deque()
        self._by_lane: deque[Item | LaneEnded] = deque()
        # The gateway forwards nothing more of this peer.
        self._is_alone = False
        # Between `tail` and `end`: the number of tail items that were taken before.
        self._is_tail = False
        self._known = 0

    @property
    def arrived(self) -> int:
        """Number of lane items received so far, taken or still waiting."""
        return self.taken + sum(map(_count, self._by_lane))

    @property
    def is_lane_early(self) -> bool:
        """Whether lane messages must wait for the gateway, so that the lane need not be read."""
        return bool(self._by_lane)

    @property
    def is_holding(self) -> bool:
        """Whether messages from the gateway must wait for the lane."""
        return bool(self._by_gateway)

    def by_gateway(self, item: Run | Unheard) -> list[Run]:
        """Take messages of this peer from the gateway."""
        # Without a preceding path switch messages are independent, such as answers.
        if not self._by_gateway and isinstance(item, list):
            return [item]
        self.held_bytes += _size(item)
        self._by_gateway.append(item)
        return self._advance()

    def by_lane(self, run: Run | Unheard) -> list[Run]:
        """Take messages from the lane."""
        if self._is_tail or self.is_over:
            return []
        self._by_lane.append(run)
        return self._advance()

    def switched_by_gateway(self, number: int) -> list[Run]:
        """Take a path switch from the gateway; within a tail it belongs to the lane."""
        if self._is_tail:
            return self._tail_item(number)
        if self.is_over:
            return []
        self.held_bytes += _size(number)
        self._by_gateway.append(number)
        return self._advance()

    def switched_by_lane(self, number: int) -> list[Run]:
        """Take a path switch from the lane."""
        if self._is_tail or self.is_over:
            return []
        self._by_lane.append(number)
        return self._advance()

    def withdraw(self, is_heard: Callable[[Run], bool]) -> None:
        """Discard waiting messages that have no receiver any more; they keep their places."""
        for queue in (self._by_gateway, self._by_lane):
            is_counted = queue is self._by_gateway or self._is_tail
            for at, item in enumerate(queue):
                if isinstance(item, list) and not is_heard(item):
                    unheard = Unheard(len(item))
                    queue[at] = unheard
                    if is_counted:
                        self.held_bytes += _size(unheard) - _size(item)

    def tail(self, start: int) -> list[Run]:
        """Begin the tail: lane items from `start` on arrive through the gateway.

        Raises:
            ProtocolError: The tail starts after the items that were taken.
        """
        if self.is_over:
            return []
        if self._is_tail or start > self.taken:
            raise ProtocolError(f"tail from item {start}, but {self.taken} items were taken")
        self._is_tail = True
        self._by_lane.clear()
        self._known = self.taken - start
        return []

    def by_tail(self, item: Run | Unheard) -> list[Run]:
        """Take one message of the tail from the gateway."""
        return self._tail_item(item) if self._is_tail else []

    def end(self, count: int) -> list[Run]:
        """Take the total number of lane items; those not here by now do not arrive."""
        if self.is_over:
            return []
        self._by_lane.append(LaneEnded(count))
        return self._advance()

    def alone(self) -> list[Run]:
        """Continue without the gateway: the lane ends where it would wait for it.

        Messages that already arrived from the gateway keep their places.
        """
        self._is_alone = True
        return self._advance()

    def over(self) -> None:
        """End the lane without a tail; held messages are available from released().

        `is_cut_short` is set if messages may be missing before them.
        """
        if self.is_over:
            return
        # If the lane is early, the messages that it waits for do not arrive either.
        self.is_cut_short = self.current % 2 == 1 or bool(self._by_lane)
        self._release(self._by_lane, 0)
        self._finish(self.taken)

    def _tail_item(self, item: Item) -> list[Run]:
        if self._known > 0:
            self._known -= 1
            return []
        self.held_bytes += _size(item)
        self._by_lane.append(item)
        return self._advance()

    def _advance(self) -> list[Run]:
        """Take queued entries as long as the next one is there."""
        runs: list[Run] = []
        while not self.is_over:
            is_lane = self.current % 2 == 1
            if self._by_lane and isinstance(self._by_lane[0], LaneEnded):
                self._finish(self._by_lane[0].count)
                break
            queue = self._by_lane if is_lane else self._by_gateway
            if not queue:
                if self._is_alone and not is_lane:
                    self.over()
                break
            item = queue.popleft()
            if isinstance(item, LaneEnded):
                break
            if self._is_tail or not is_lane:
                # Lane entries that wait are not counted here: they are bounded by the window.
                self.held_bytes -= _size(item)
            if isinstance(item, int):
                self.taken += is_lane
                self._switch(item)
            elif isinstance(item, Unheard):
                self.taken += item.count if is_lane else 0
            else:
                self.taken += len(item) if is_lane else 0
                runs.append(item)
        return runs

    def _switch(self, number: int) -> None:
        """Switch to the next segment; the other path's copy of the same switch is ignored."""
        if number == self.current + 1:
            self.current = number
        elif number != self.current:
            raise ProtocolError(f"path switch {number} in segment {self.current}")

    def _finish(self, count: int) -> None:
        """End the lane: later messages arrive through the gateway."""
        self.missing = max(0, count - self.taken)
        self.is_over = True
        self._is_tail = False
        self._by_lane.clear()
        self.held_bytes = 0
        self._release(self._by_gateway, 1)
        self._by_gateway.clear()

    def _release(self, queue: Iterable[Item | LaneEnded], parity: int) -> None:
        """Release held messages; a missing segment between two switches starts a new list."""
        for item in queue:
            if isinstance(item, list):
                self._released[-1].append(item)
            elif isinstance(item, int) and item % 2 == parity and self._released[-1]:
                self._released.append([])

    def released(self) -> list[list[Run]]:
        """Return the messages held at the end of the lane; between two lists some are missing."""
        released, self._released = self._released, [[]]
        return released


def _count(item: Item | LaneEnded) -> int:
    """Number of lane items that an entry of a queue stands for."""
    if isinstance(item, list):
        return len(item)
    if isinstance(item, Unheard):
        return item.count
    return 1 if isinstance(item, int) else 0


def _size(item: Item) -> int:
    """Return the size of a held entry."""
    return _WAITING_BYTES + (sum(map(len, item)) if isinstance(item, list) else 0)
