"""Runs journal maintenance: at the start, when a segment is complete, and as messages age."""

import asyncio
import contextlib
import logging
import sys
import time
from pathlib import Path

from weft.gateway.config.settings import JournalSettings
from weft.journal.retention import newest_s
from weft.journal.trusted_time import HOLD_S, TrustedTime

_log = logging.getLogger(__name__)

# Longest delay of removing old segments.
AGING_S = 60.0


class Tidying:
    """Runner of maintenance processes, one at a time."""

    def __init__(self, root: Path, service: str, node: str, settings: JournalSettings) -> None:
        self._settings = settings
        keep = (settings.seal, str(settings.keep_bytes), str(settings.keep_s), settings.compact)
        self._command = ("-m", "weft.journal.maintenance", str(root), service, node, *keep)
        newest = newest_s(root, service, node)
        self._time = TrustedTime(time.time(), _running_s(), newest, settings.keep_s)
        self._is_distrusted = False
        self._due = asyncio.Event()
        self._due.set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def segment_ended(self) -> None:
        """Start maintenance: a segment is complete."""
        self._due.set()

    async def close(self) -> None:
        """Stop; an unfinished seal is repeated at the next start."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        settings = self._settings
        if settings.seal == "never" and not (settings.keep_bytes or settings.keep_s):
            return
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGING_S if settings.keep_s else None):
                    await self._due.wait()
            self._due.clear()
            await self._tidy()

    async def _tidy(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", *self._command, repr(self._now_s())),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        lines = said.decode(errors="replace").splitlines()
        if process.returncode:
            _log.error("journal: maintenance failed: %s", lines[-1] if lines else "no reason given")
            return
        for line in lines:
            _log.log(
                logging.ERROR if line.startswith("cannot") else logging.INFO, "journal: %s", line
            )

    def _now_s(self) -> float:
        """Return the current time for retention; log when it differs from the wall clock."""
        wall_s = time.time()
        now_s = self._time.now(wall_s, _running_s())
        is_distrusted = now_s != wall_s
        if is_distrusted and not self._is_distrusted:
            _log.warning(
                "journal: the clock is %.0f s ahead of the elapsed time, or the journal was not"
                " written for as long: no segment is removed by age for %.0f s",
                wall_s - now_s,
                HOLD_S,
            )
        self._is_distrusted = is_distrusted
        return now_s


def _running_s() -> float:
    """Return a clock that cannot be set, and that runs while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
