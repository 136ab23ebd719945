"""One direction of a lane, at the end that receives: two ways, joined into the one stream they are.

Pure. What a peer says comes in stretches: through the gateway, by the lane, through the gateway …
Stretch 0 is the gateway's. Both ways name each change, so whoever is early waits for the other.
A lane that is over is brought to its end through the gateway: what is left of it, and how many
items there were in all.
"""

from collections import deque
from collections.abc import Callable, Iterable

from weft.errors import ProtocolError

# Frames that came one after the other and share flags and subject.
Run = list[bytes]


class Ended:
    """The last item of a lane: there were so many."""

    def __init__(self, count: int) -> None:
        self.count = count


class Unheard:
    """Items that count, and that nobody is to hear."""

    def __init__(self, count: int) -> None:
        self.count = count


# What waits for its turn: messages, a change of way.
Item = Run | int | Unheard

# What anything that waits counts for, beside its bytes.
_WAITING_BYTES = 64


class In:
    """What one peer sends, by both ways; each method returns what is to be dealt with now.

    Once it is over, what was held back until then is to be had from released().
    """

    def __init__(self) -> None:
        # The stretch that is being taken: even ones come through the gateway.
        self.current = 0
        # Items of the lane that were taken.
        self.taken = 0
        self.is_over = False
        # Items that will never come; and whether there may have been some that nobody counted.
        self.missing = 0
        self.is_cut_short = False
        # What came through the gateway and waits.
        self.held_bytes = 0
        self._released: list[list[Run]] = [[]]
        self._by_gateway: deque[Item | Ended] = deque()
        self._by_lane: deque[Item | Ended] = deque()
        # Nothing more comes through the gateway.
        self._is_alone = False
        # Between `tail` and `end`: how many of what comes are known already.
        self._is_tail = False
        self._known = 0

    @property
    def arrived(self) -> int:
        """Number of lane items received so far, taken or still waiting."""
        return self.taken + sum(map(_count, self._by_lane))

    @property
    def is_lane_early(self) -> bool:
        """Say if the lane brought what must wait for the gateway: it need not be read on."""
        return bool(self._by_lane)

    @property
    def is_holding(self) -> bool:
        """Say if what comes through the gateway must wait for the lane."""
        return bool(self._by_gateway)

    def by_gateway(self, item: Run | Unheard) -> list[Run]:
        """Messages of this peer came through the gateway."""
        # What is said without a change of way before it stands for itself, such as an answer.
        if not self._by_gateway and isinstance(item, list):
            return [item]
        self.held_bytes += _size(item)
        self._by_gateway.append(item)
        return self._advance()

    def by_lane(self, run: Run | Unheard) -> list[Run]:
        """Messages came by the lane."""
        if self._is_tail or self.is_over:
            return []
        self._by_lane.append(run)
        return self._advance()

    def switched_by_gateway(self, number: int) -> list[Run]:
        """A change of way came through the gateway; in a tail it is one of the lane."""
        if self._is_tail:
            return self._tail_item(number)
        if self.is_over:
            return []
        self.held_bytes += _size(number)
        self._by_gateway.append(number)
        return self._advance()

    def switched_by_lane(self, number: int) -> list[Run]:
        """A change of way came by the lane."""
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
        """The lane ends; what it was sent from this item on comes through the gateway.

        Raises:
            ProtocolError: it does not fit what was taken.
        """
        if self.is_over:
            return []
        if self._is_tail or start > self.taken:
            raise ProtocolError(f"a tail from {start}, after {self.taken} items")
        self._is_tail = True
        self._by_lane.clear()
        self._known = self.taken - start
        return []

    def by_tail(self, item: Run | Unheard) -> list[Run]:
        """One message of the tail came through the gateway."""
        return self._tail_item(item) if self._is_tail else []

    def end(self, count: int) -> list[Run]:
        """There were so many items in all; what is not here by now will not come."""
        if self.is_over:
            return []
        self._by_lane.append(Ended(count))
        return self._advance()

    def alone(self) -> list[Run]:
        """Nothing more comes through the gateway: the lane goes on to where it would wait for it.

        What came through the gateway already still has its place.
        """
        self._is_alone = True
        return self._advance()

    def over(self) -> None:
        """Nothing more comes by the lane, and no tail: let go what there is.

        `is_cut_short` says if something may be missing before that.
        """
        if self.is_over:
            return
        # Where the lane is early, what it waits for will not come through the gateway either.
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
        """Take whatever is next, as far as it has come."""
        runs: list[Run] = []
        while not self.is_over:
            is_lane = self.current % 2 == 1
            if self._by_lane and isinstance(self._by_lane[0], Ended):
                self._finish(self._by_lane[0].count)
                break
            queue = self._by_lane if is_lane else self._by_gateway
            if not queue:
                if self._is_alone and not is_lane:
                    self.over()
                break
            item = queue.popleft()
            if isinstance(item, Ended):
                break
            if self._is_tail or not is_lane:
                # Of what comes by the lane itself the wire holds the rest.
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
        """A change of way: it ends this stretch, or says again that it has begun."""
        if number == self.current + 1:
            self.current = number
        elif number != self.current:
            raise ProtocolError(f"change {number} of the way, in stretch {self.current}")

    def _finish(self, count: int) -> None:
        """The lane is over: from now on everything comes through the gateway."""
        self.missing = max(0, count - self.taken)
        self.is_over = True
        self._is_tail = False
        self._by_lane.clear()
        self.held_bytes = 0
        self._release(self._by_gateway, 1)
        self._by_gateway.clear()

    def _release(self, queue: Iterable[Item | Ended], parity: int) -> None:
        """Let go what waits; at each change to the other way something is missing."""
        for item in queue:
            if isinstance(item, list):
                self._released[-1].append(item)
            elif isinstance(item, int) and item % 2 == parity and self._released[-1]:
                self._released.append([])

    def released(self) -> list[list[Run]]:
        """What was held back, once the lane is over: between two of these something is missing."""
        released, self._released = self._released, [[]]
        return released


def _count(item: Item | Ended) -> int:
    """Number of lane items that an entry of a queue stands for."""
    if isinstance(item, list):
        return len(item)
    if isinstance(item, Unheard):
        return item.count
    return 1 if isinstance(item, int) else 0


def _size(item: Item) -> int:
    """What an item that waits counts for."""
    return _WAITING_BYTES + (sum(map(len, item)) if isinstance(item, list) else 0)
