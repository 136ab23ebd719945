"""The time by which old messages are removed: a clock that jumps must not empty a journal.

A wall clock that runs ahead of the time that has really passed is not believed for an hour. At the
start, messages stand for the time that has passed: all of them being too old looks like a jump.
"""

# What a clock may gain by being set right.
SLACK_S = 60.0
# A jump that lasts as long as this is the right time.
HOLD_S = 3600.0


class TrustedTime:
    """A wall clock whose forward jumps count only after HOLD_S.

    Args:
        wall_s: The wall clock now.
        running_s: A clock that is never set, now; it should count while the machine is suspended.
        newest_s: When the journal was last written, by the wall clock; None if it is empty.
        keep_s: How long messages are kept; 0 is for ever.
    """

    def __init__(
        self, wall_s: float, running_s: float, newest_s: float | None, keep_s: float
    ) -> None:
        is_stale = newest_s is not None and 0 < keep_s < wall_s - newest_s - SLACK_S
        self._behind_s = (newest_s if newest_s is not None and is_stale else wall_s) - running_s
        self._jumped_s: float | None = None

    def now(self, wall_s: float, running_s: float) -> float:
        """Return the time to go by; the wall clock unless it has jumped ahead."""
        expected_s = self._behind_s + running_s
        if wall_s - expected_s <= SLACK_S:
            self._behind_s = wall_s - running_s
            self._jumped_s = None
            return wall_s
        if self._jumped_s is None:
            self._jumped_s = running_s
        if running_s - self._jumped_s >= HOLD_S:
            self._behind_s = wall_s - running_s
            return wall_s
        return expected_s
