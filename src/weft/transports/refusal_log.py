"""Rate-limited log of refusals: one line per second and reason, with the number of the others.

Shared by the front and the transports of services: a flood of refusals must not flood the log.
"""

import logging
import time
from collections import Counter

LOG_EVERY_S = 1.0


class RefusalLog:
    """Log lines about refusals, at most one per reason every LOG_EVERY_S."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        # Both by reason, the name of an error class: few keys.
        self._quiet_until: dict[str, float] = {}
        self._unlogged: Counter[str] = Counter()

    def add(self, error: Exception, about: dict[str, str]) -> None:
        """Log a refusal, or count it for the next line with its reason."""
        reason = type(error).__name__
        now = time.monotonic()
        if now < self._quiet_until.get(reason, 0.0):
            self._unlogged[reason] += 1
            return
        self._quiet_until[reason] = now + LOG_EVERY_S
        others = self._unlogged.pop(reason, 0)
        more = f" ({others} others since the last such line)" if others else ""
        self._log.info("refused, %s: %s%s", reason, error, more, extra=about)
