"""Fair shares: how much of what a service has one key may take.

One key gets only a part of each bound of the service: `limits.share`.
Without keys everyone on this machine is trusted alike; then a connection stands for a key, which
keeps one that runs wild from taking everything.
"""

from weft.broker.limits import Limits
from weft.errors import TooMany


class Shares:
    """Counts of one kind of thing by holder."""

    def __init__(self, things: str) -> None:
        self._things = things
        self._counts: dict[str, int] = {}

    def count(self, holder: str) -> int:
        """Return how many a holder has."""
        return self._counts.get(holder, 0)

    def check(self, holder: str, total: int, limits: Limits) -> None:
        """Refuse one more to a holder that has its share of a total.

        Raises:
            TooMany: it has; the text names its share and the total.
        """
        share = limits.share_of(total)
        if self.count(holder) >= share:
            kind = holder.partition(" ")[0]
            raise TooMany(
                f"this {kind} has {share} {self._things}, which is its share of {total}: see"
                " limits.share"
            )

    def add(self, holder: str, count: int = 1) -> None:
        """Count more of a holder, or fewer if `count` is negative."""
        left = self.count(holder) + count
        if left > 0:
            self._counts[holder] = left
        else:
            self._counts.pop(holder, None)
