"""Work that waits for the disk, done on a thread of its own; what came of it is heard in a turn."""

import logging
import os
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from weft.errors import WeftError
from weft.transports.loop.poller import READING, Poll

_log = logging.getLogger(__name__)

# What came of an errand: its result, or why it failed.
Then = Callable[[Any], None]
Failed = Callable[[Exception], None]


class Errands:
    """One errand after the other."""

    def __init__(self, poll: Poll, name: str) -> None:
        self._poll = poll
        self._todo: queue.SimpleQueue[tuple[Callable[[], Any], Then, Failed] | None]
        self._todo = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        # Rung by the thread; a turn answers, however long the loop is kept waiting.
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        poll.watch(self._bell, self, READING)
        self._thread.start()

    def do(self, errand: Callable[[], Any], then: Then, failed: Failed) -> None:
        """Have something done; one of the two is called in a turn afterwards."""
        self._todo.put((errand, then, failed))

    def happened(self, events: int) -> None:  # noqa: ARG002  # the bell only rings
        """Something was done."""
        os.eventfd_read(self._bell)
        while not self._done.empty():
            self._done.get_nowait()()

    def give_up(self, error: WeftError) -> None:
        """Nothing: there is no connection that could end."""
        _log.error("%s: %s", self._thread.name, error)

    def close(self, within_s: float) -> bool:
        """Finish what is being done and nothing else; False if it took too long."""
        self._poll.watch(self._bell, self, 0)
        while not self._todo.empty():
            self._todo.get_nowait()
        self._todo.put(None)
        self._thread.join(within_s)
        if self._thread.is_alive():
            # It still has the bell, which ends with the process.
            return False
        os.close(self._bell)
        return True

    def _run(self) -> None:
        while (next_one := self._todo.get()) is not None:
            errand, then, failed = next_one
            try:
                result = errand()
            except Exception as error:  # whoever asked for it is told
                self._tell(partial(failed, error))
            else:
                self._tell(partial(then, result))

    def _tell(self, news: Callable[[], None]) -> None:
        self._done.put(news)
        os.eventfd_write(self._bell, 1)
