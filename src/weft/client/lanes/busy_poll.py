"""Looks for what comes next by a lane before the loop rests.

To wake a program that sleeps takes longer than most answers. A look is short and ends with whatever
comes; the more of them are in vain, the fewer there are.
"""

import os
from collections.abc import Callable
from time import perf_counter

LOOK_S = 100e-6
# After a look in vain so many are left out at most.
SKIPPED_MAX = 64


class Looking:
    """Keeps a loop from resting while an answer, or the next question, is about to come.

    A loop that has something to call soon does not rest.
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
        """Something was sent that may be answered at once."""
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
        """Something came by a lane."""
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
    """Say if whoever looks leaves another core to whoever answers."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        # Only Linux says which of them this program may use.
        cores = os.cpu_count() or 1
    return cores > 1
