"""The process of a query: killed with everything that it started, and started again."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from tools.exactly_once.query import Plan

# How long a driver may take for its next batch, and for all that is left.
_BATCH_S = 180.0
_LAST_S = 900.0
_LOOK_S = 0.01


class Driver:
    """One query, run by one process after the other."""

    def __init__(self, plan: Plan, log: Path) -> None:
        self._plan = plan
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        # How often the query ended by itself.
        self.failures = 0

    def start(self, *, is_last: bool = False) -> None:
        """Start a process; the last one reads what is left, and ends."""
        plan = replace(self._plan, is_last=is_last)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tools.exactly_once.query", plan.to_json()],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_for_batch(self) -> None:
        """Wait until it has ended a batch since now.

        Raises:
            RuntimeError: it did not, or the process is gone.
        """
        before = self.batches
        ends = time.monotonic() + _BATCH_S
        while self.batches == before:
            self.restart_if_gone()
            if time.monotonic() > ends:
                raise RuntimeError(f"no batch in {_BATCH_S} s; see {self._log}")
            time.sleep(_LOOK_S)

    def restart_if_gone(self) -> None:
        """Start the process again if it has ended by itself: the query failed."""
        if self._process is not None and self._process.poll() is not None:
            self.failures += 1
            self.start()

    @property
    def batches(self) -> int:
        """How many batches the query has written down as done."""
        commits = Path(self._plan.checkpoint) / "commits"
        names = [path.name for path in commits.glob("[0-9]*")] if commits.exists() else []
        return max((int(name) for name in names if name.isdecimal()), default=-1) + 1

    def kill(self) -> None:
        """Kill the process, its JVM and its workers."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def finish(self) -> None:
        """Read what is left, to the end.

        Raises:
            RuntimeError: that failed.
        """
        self.kill()
        self.start(is_last=True)
        if self._process is None or self._process.wait(_LAST_S) != 0:
            raise RuntimeError(f"the query failed; see {self._log}")
        self._process = None
