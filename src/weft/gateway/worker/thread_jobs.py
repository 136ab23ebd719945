"""Thread jobs: blocking disk work on a thread, whose results arrive in a turn of the loop."""

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

# Callbacks for the result of a job, and for its error.
Then = Callable[[Any], None]
Failed = Callable[[Exception], None]


class Errands:
    """Queue of jobs that run one after another on a thread."""

    def __init__(self, poll: Poll, name: str) -> None:
        self._poll = poll
        self._todo: queue.SimpleQueue[tuple[Callable[[], Any], Then, Failed] | None]
        self._todo = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        # Signalled by the thread, handled in a turn: independent of how busy the loop is.
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        poll.watch(self._bell, self, READING)
        self._thread.start()

    def do(self, errand: Callable[[], Any], then: Then, failed: Failed) -> None:
        """Queue a job; one of the two callbacks runs in a turn after it."""
        self._todo.put((errand, then, failed))

    def happened(self, events: int) -> None:  # noqa: ARG002  # only one kind of event
        """Run the callbacks of finished jobs."""
        os.eventfd_read(self._bell)
        while not self._done.empty():
            self._done.get_nowait()()

    def give_up(self, error: WeftError) -> None:
        """Log the error: there is no connection to end."""
        _log.error("%s: %s", self._thread.name, error)

    def close(self, within_s: float) -> bool:
        """Finish the current job and drop the others; return False on timeout."""
        self._poll.watch(self._bell, self, 0)
        while not self._todo.empty():
            self._todo.get_nowait()
        self._todo.put(None)
        self._thread.join(within_s)
        if self._thread.is_alive():
            # The thread still uses the eventfd, which is closed when the process exits.
            return False
        os.close(self._bell)
        return True

    def _run(self) -> None:
        while (next_one := self._todo.get()) is not None:
            errand, then, failed = next_one
            try:
                result = errand()
            except Exception as error:  # passed to the caller's callback
                self._tell(partial(failed, error))
            else:
                self._tell(partial(then, result))

    def _tell(self, news: Callable[[], None]) -> None:
        self._done.put(news)
        os.eventfd_write(self._bell, 1)
