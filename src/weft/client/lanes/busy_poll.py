"""Busy poll: spin for the next lane message before the event loop blocks.

Waking a sleeping program takes longer than most answers. A spin is short and ends with the next
message; the more of them end without one, the fewer follow.
"""

import os
from collections.abc import Callable
from time import perf_counter

LOOK_S = 100e-6
# Maximum number of spins to skip after a spin without a message.
SKIPPED_MAX = 64


class Looking:
    """Keeps the loop from blocking while an answer, or the next request, is expected.

    A loop with a scheduled call does not block.
    """

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        clock: Callable[[], float] = perf_counter,
        *,
        is_wanted: bool,
    ) -> None:
        self._call_soon = call_soon
        self._clock = clock
        self._is_wanted = is_wanted
        self._is_looking = False
        self._has_come = False
        self._until = 0.0
        self._in_vain = 0
        self._skips = 0

    def begin(self) -> None:
        """Start to spin: a message that may be answered at once was sent."""
        if not self._is_wanted or self._is_looking:
            return
        if self._skips:
            self._skips -= 1
            return
        self._is_looking = True
        self._has_come = False
        self._until = self._clock() + LOOK_S
        self._call_soon(self._look)

    def came(self) -> None:
        """End the spin: a message arrived through a lane."""
        self._has_come = True

    def _look(self) -> None:
        if self._has_come:
            self._is_looking = False
            self._in_vain = 0
        elif self._clock() < self._until:
            self._call_soon(self._look)
        else:
            self._is_looking = False
            self._in_vain = min(max(1, 2 * self._in_vain), SKIPPED_MAX)
            self._skips = self._in_vain


def has_cores() -> bool:
    """Return whether another core is left for the responder while this program spins."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        # Only Linux reports the cores that this process may use.
        cores = os.cpu_count() or 1
    return cores > 1
