"""Quotas: the part of each limit of a service that one key may use.

One key may use a fraction of each limit, `limits.share`. Without keys all clients are trusted; then
each connection has a quota instead, so that a runaway client does not use up everything.
"""

from weft.broker.limits import Limits
from weft.errors import TooMany


class KeyQuota:
    """Counts of one kind of resource by holder."""

    def __init__(self, things: str) -> None:
        self._things = things
        self._counts: dict[str, int] = {}

    def count(self, holder: str) -> int:
        """Return the count of a holder."""
        return self._counts.get(holder, 0)

    def check(self, holder: str, total: int, limits: Limits) -> None:
        """Check that a holder may have one more.

        Raises:
            TooMany: it has its share of the total; the text names both.
        """
        share = limits.share_of(total)
        if self.count(holder) >= share:
            kind = holder.partition(" ")[0]
            raise TooMany(
                f"this {kind} has {share} {self._things}, which is its share of {total}: see"
                " limits.share"
            )

    def add(self, holder: str, count: int = 1) -> None:
        """Add to the count of a holder; a negative `count` subtracts."""
        left = self.count(holder) + count
        if left > 0:
            self._counts[holder] = left
        else:
            self._counts.pop(holder, None)
