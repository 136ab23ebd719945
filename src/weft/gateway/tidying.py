"""Has the journal of a service tidied: at the start, when a segment is complete, and as it ages."""

import asyncio
import contextlib
import logging
import sys
from pathlib import Path

from weft.gateway.settings import JournalSettings

_log = logging.getLogger(__name__)

# How late old segments may be removed.
AGING_S = 60.0


class Tidying:
    """One process at a time that tidies, for as long as it takes."""

    def __init__(self, root: Path, service: str, node: str, settings: JournalSettings) -> None:
        self._settings = settings
        keep = (settings.seal, str(settings.keep_bytes), str(settings.keep_s), settings.compact)
        self._command = ("-m", "weft.journal.tidy", str(root), service, node, *keep)
        self._due = asyncio.Event()
        self._due.set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def segment_ended(self) -> None:
        """There is something to tidy."""
        self._due.set()

    async def close(self) -> None:
        """End; what is being sealed is sealed the next time."""
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
            *(sys.executable, "-P", *self._command),
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
            _log.error(
                "journal: it cannot be tidied: %s", lines[-1] if lines else "no reason given"
            )
            return
        for line in lines:
            _log.log(
                logging.ERROR if line.startswith("cannot") else logging.INFO, "journal: %s", line
            )
