"""How far a publisher is ahead of the slowest of its receivers, and how it waits for that one."""

import asyncio
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.peers.lanes.hearing import FOUND, STEP, TOLD, WRONG
from benchmarks.peers.lanes.part import Part
from benchmarks.running import Failed

STALL_S = 10.0
_READ_BYTES = 65_536


class Progress:
    """What was sent, and what every receiver has told of it."""

    def __init__(self, part: Part) -> None:
        self.sent = 0
        self._step = STEP if part.case == "flow" else 1
        self._heard = dict.fromkeys(part.pipes, 0)
        self._found: set[int] = set()

    def has_found_all(self) -> bool:
        """Say if every receiver has heard something."""
        return len(self._found) == len(self._heard)

    def is_ahead(self, window: int) -> bool:
        """Say if more than a window is on its way to somebody."""
        return self.sent - min(self._heard.values()) > window

    def take(self, pipe: int) -> None:
        """A receiver has told something.

        Raises:
            Failed: it has ended, or was given what was not next.
        """
        told = os.read(pipe, _READ_BYTES)
        if not told:
            raise Failed("a receiver has ended")
        if WRONG in told:
            raise Failed(f"after {self._heard[pipe]} messages a receiver got what was not next")
        if FOUND in told:
            self._found.add(pipe)
        self._heard[pipe] += told.count(TOLD) * self._step

    def wait(self, window: int, stall_s: float = STALL_S) -> None:
        """Wait until there is room in a window."""
        while self.is_ahead(window):
            if not self.look(stall_s):
                raise Failed(f"stalled: {min(self._heard.values())} of {self.sent} were heard")

    def look(self, timeout_s: float) -> bool:
        """Take what is told now or soon; say if anything was."""
        ready = select.select(list(self._heard), [], [], timeout_s)[0]
        for pipe in ready:
            self.take(pipe)
        return bool(ready)


class AsyncProgress(Progress):
    """The same for a publisher on a loop, which is told while it waits for something else."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._loop = asyncio.get_running_loop()
        self._changed: asyncio.Future[None] = self._loop.create_future()
        self._listen()

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Be told nothing for a while, as a blocking publisher is told nothing while it sleeps."""
        self._ignore()
        yield
        self._listen()

    async def room(self, window: int) -> None:
        """Let others run, and wait until there is room in a window.

        Whoever started this process gives up if that never comes.
        """
        await asyncio.sleep(0)
        while self.is_ahead(window):
            await self._changed
            self._changed = self._loop.create_future()

    def close(self) -> None:
        """Listen no more."""
        self._ignore()
        self._changed.cancel()

    def _listen(self) -> None:
        for pipe in self._heard:
            self._loop.add_reader(pipe, self._told, pipe)

    def _ignore(self) -> None:
        for pipe in self._heard:
            self._loop.remove_reader(pipe)

    def _told(self, pipe: int) -> None:
        try:
            self.take(pipe)
        except Failed as error:
            self._loop.remove_reader(pipe)
            if not self._changed.done():
                self._changed.set_exception(error)
        else:
            if not self._changed.done():
                self._changed.set_result(None)
