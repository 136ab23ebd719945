"""Clock for retention: a jump of the wall clock must not empty a journal.

A wall clock that runs ahead of the elapsed time is not trusted for an hour. At the start, the last
message stands in for the elapsed time: if all messages are too old, the clock may have jumped.
"""

# Normal correction of a clock.
SLACK_S = 60.0
# After this time a jump is taken for the correct time.
HOLD_S = 3600.0


class TrustedTime:
    """Wall clock whose forward jumps count only after HOLD_S.

    Args:
        wall_s: The current wall-clock time.
        running_s: The current time of a clock that is never set; it should count during suspend.
        newest_s: When the journal was last written, by the wall clock; None if it is empty.
        keep_s: The age limit of messages; 0 means unlimited.
    """

    def __init__(
        self, wall_s: float, running_s: float, newest_s: float | None, keep_s: float
    ) -> None:
        is_stale = newest_s is not None and 0 < keep_s < wall_s - newest_s - SLACK_S
        self._behind_s = (newest_s if newest_s is not None and is_stale else wall_s) - running_s
        self._jumped_s: float | None = None

    def now(self, wall_s: float, running_s: float) -> float:
        """Return the trusted time: the wall clock unless it has jumped ahead."""
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
