"""Watchdog: detects a worker process that hangs, whose event loop makes no more turns.

Silence is counted in ticks of the front, not by a clock: time in which the front itself was
stopped, or got no CPU, does not count. A process that is silent only because it waits for CPU or
disk is left alone: killing it would add load to a busy machine.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_log = logging.getLogger(__name__)

TICK_S = 1.0
# Time after which /readyz reports a silent worker.
REPORTED_S = 5.0
# A spinning process uses more than this share of a CPU while it is silent; one that waits for CPU
# time on a busy machine uses less.
_STARVED_SHARE = 0.1

_CLOCK_HZ = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """State of a process, one letter, and its CPU time, as the kernel reports them."""

    state: str
    cpu_s: float


class Watchdog:
    """Counter of the time for which one process has been silent."""

    def __init__(self, pid: int, look: Callable[[int], Usage | None] | None = None) -> None:
        self._pid = pid
        self._look = look or usage_of
        self._silent_ticks = 0
        self._cpu_s = 0.0
        self._least_s = 0.0
        self._is_starved = False

    @property
    def silent_s(self) -> float:
        """Time without a message from the process."""
        # The tick in which a message arrived does not count.
        return max(self._silent_ticks - 1, 0) * TICK_S

    @property
    def is_silent(self) -> bool:
        """Return whether the process has been silent long enough to report it."""
        return self.silent_s >= REPORTED_S

    def heard(self) -> None:
        """Record that the process made a turn."""
        self._silent_ticks = 0
        self._is_starved = False

    def allow(self, seconds: float) -> None:
        """Allow at least this time of silence: the process is closing its files."""
        self._least_s = seconds

    def tick(self, limit_s: float) -> bool:
        """Count one tick; return whether the process hangs. A limit of 0 is never reached."""
        self._silent_ticks += 1
        usage = self._look(self._pid)
        if usage is None:
            # It has exited, which is handled elsewhere.
            return False
        if self._silent_ticks == 1:
            self._cpu_s = usage.cpu_s
        if limit_s == 0 or self.silent_s < max(limit_s, self._least_s):
            return False
        return not self._waits_for_its_share(usage)

    def _waits_for_its_share(self, usage: Usage) -> bool:
        """Return whether a process waits for CPU or disk, or is under a debugger."""
        used_s = usage.cpu_s - self._cpu_s
        is_starved = usage.state == "R" and used_s < _STARVED_SHARE * self.silent_s
        if not is_starved and usage.state not in {"D", "t"}:
            return False
        if not self._is_starved:
            self._is_starved = True
            text = "worker %s made no turn for %s s, but had %.1f s of the processor (state %s)"
            _log.warning(text, self._pid, self.silent_s, used_s, usage.state)
        return True


def usage_of(pid: int) -> Usage | None:
    """Return the state and CPU time of a process; None if it does not exist."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name before it may hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return Usage(fields[0], (int(fields[11]) + int(fields[12])) / _CLOCK_HZ)
