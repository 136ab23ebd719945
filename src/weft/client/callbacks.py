"""Where the callbacks of a blocking connection run: on the library's thread, or pumped by hand."""

import concurrent.futures
import queue
import threading
from typing import TypeVar

from weft.client.intake import Intake
from weft.client.mailbox import Mailbox
from weft.client.status import Reporter, Status, StatusCallback
from weft.errors import UsageError

_Result = TypeVar("_Result")

# How long a callback may take to end when the connection is closed.
STOP_S = 10.0


class Callbacks:
    """Runs what is in one mailbox, in order, one at a time."""

    def __init__(self, intake: Intake, reporter: Reporter) -> None:
        self.mailbox = Mailbox(intake)
        self.is_discarding = False
        self._reporter = reporter
        self._thread: threading.Thread | None = None
        # Only one thread at a time runs callbacks; this is its number.
        self._runner: int | None = None
        self._turn = threading.Lock()

    def start(self, name: str | None) -> None:
        """Begin to run callbacks on a thread of this name; without one they wait for pump()."""
        if name is not None:
            # A daemon: a program that forgets to close still ends.
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def is_running_here(self) -> bool:
        """Say if the calling thread is within a callback."""
        return self._runner == threading.get_ident()

    def pump(self, timeout: float | None) -> int:
        """Run what is due on the calling thread; wait for something if nothing is.

        Raises:
            UsageError: a thread of the library runs it, or the caller is a callback itself.
        """
        if self._thread is not None:
            raise UsageError("pump() needs a connection made with callbacks='pumped'")
        if self.is_running_here():
            raise UsageError("a callback cannot pump: it is being run by pump()")
        return self._pump(timeout)

    def run_until(self, future: concurrent.futures.Future[_Result]) -> _Result:
        """Wait for a result, and if this connection is pumped by hand, pump meanwhile."""
        if self._thread is None:
            future.add_done_callback(lambda _: self.mailbox.put_news(_nothing, None))
            while not future.done():
                self._pump(None)
        return future.result()

    def teller(self, on_status: StatusCallback) -> StatusCallback:
        """A status callback that is run here instead of where the status arises."""

        def tell(status: Status) -> None:
            try:
                on_status(status)
            except Exception:
                self._reporter.logger.exception(
                    "%s: the status callback raised", self._reporter.label
                )

        return lambda status: self.mailbox.put_news(tell, status)

    def discard(self) -> None:
        """From now on throw messages away instead of handing them to callbacks."""
        self.is_discarding = True

    def stop(self) -> None:
        """End, once what is due has run; a callback that stops its own runner does not wait."""
        self.mailbox.end()
        if self._thread is not None and not self.is_running_here():
            self._thread.join(STOP_S)

    def _run(self) -> None:
        self._runner = threading.get_ident()
        while (item := self.mailbox.take(None)) is not None:
            call, argument = item
            call(argument)

    def _pump(self, timeout: float | None) -> int:
        with self._turn:
            self._runner = threading.get_ident()
            try:
                return self._run_due(timeout)
            finally:
                self._runner = None

    def _run_due(self, timeout: float | None) -> int:
        # What comes meanwhile is for the next call: this one must come to an end.
        due = max(len(self.mailbox), 1)
        for count in range(due):
            try:
                item = self.mailbox.take(timeout if count == 0 else 0)
            except queue.Empty:
                return count
            if item is None:
                return count
            call, argument = item
            call(argument)
        return due


def _nothing(_: object) -> None:
    """Wake whoever pumps."""
