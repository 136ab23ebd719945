"""Fair queue: holders take turns, however many items each has queued.

The peers of one holder take turns, too; each peer is served in its own order.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items by holder and peer; the caller bounds their number."""

    def __init__(self) -> None:
        # The first key of either dict is next; none of the queues is empty.
        self._holders: dict[str, dict[int, deque[Item]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def holders(self) -> Iterable[str]:
        """Return the holders with waiting items, the next one first."""
        return self._holders

    def add(self, holder: str, peer: int, item: Item) -> None:
        """Append an item of a peer."""
        peers = self._holders.setdefault(holder, {})
        peers.setdefault(peer, deque()).append(item)
        self._count += 1

    def take(self, may: Callable[[str], bool] | None = None) -> Item | None:
        """Remove and return the next item of a holder that `may` permits; None if there is none."""
        allowed = (each for each in self._holders if may is None or may(each))
        holder = next(allowed, None)
        if holder is None:
            return None
        peers = self._holders[holder]
        peer, items = next(iter(peers.items()))
        item = items.popleft()
        # Both go to the end, if they have items left.
        del self._holders[holder], peers[peer]
        if items:
            peers[peer] = items
        if peers:
            self._holders[holder] = peers
        self._count -= 1
        return item
