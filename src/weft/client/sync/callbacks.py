"""Runner of a blocking connection's callbacks: on its own thread, or within pump()."""

import concurrent.futures
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from weft.client.status import Reporter, Status, StatusCallback
from weft.client.subscriptions.receive_window import ReceiveWindow
from weft.client.sync.interruptible import piece_of, result_of
from weft.client.sync.queue import Item
from weft.errors import NotOpen, UsageError

_Result = TypeVar("_Result")

# Limit on waiting for a callback when the connection is closed.
STOP_S = 10.0
# Limit on queued status calls: each is small, but their number is not bounded otherwise.
NEWS_MAX = 1024


class Callbacks:
    """Runs calls in order, one at a time; a receive window bounds the queued messages."""

    def __init__(self, intake: ReceiveWindow, reporter: Reporter) -> None:
        self.intake = intake
        self.is_discarding = False
        self.news_lost = 0
        self._reporter = reporter
        self._due: deque[Item | None] = deque()
        self._news = 0
        self._news_lock = threading.Lock()
        self._changed = threading.Condition(threading.Lock())
        # Waiting threads are notified once for a series of put() calls. It is set before their last
        # check of the queue, so that put() can read it without the lock.
        self._is_anyone_asleep = False
        self._thread: threading.Thread | None = None
        # Only one thread at a time runs callbacks: the identifier of that thread.
        self._runner: int | None = None

    def start(self, name: str | None) -> None:
        """Start the callback thread of this name; with None, calls wait for pump()."""
        if name is not None:
            # A daemon thread: a program that does not close the connection can still exit.
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def put(self, call: Callable[[Any], object], argument: object) -> None:
        """Queue a call that the receive window has admitted."""
        self._due.append((call, argument))
        if self._is_anyone_asleep:
            self._wake()

    def put_back(self, call: Callable[[Any], object], argument: object) -> None:
        """Put a call in front of the queue: the rest of an interrupted one."""
        self._due.appendleft((call, argument))

    def put_news(self, call: Callable[[Any], object], argument: object) -> None:
        """Queue a status call, outside the receive window; above `NEWS_MAX` only count it."""
        with self._news_lock:
            if self._news >= NEWS_MAX:
                self.news_lost += 1
                return
            self._news += 1
        self.put(self._tell, (call, argument))

    def is_running_here(self) -> bool:
        """Return whether the calling thread is running a callback."""
        return self._runner == threading.get_ident()

    def pump(self, timeout: float | None) -> int:
        """Run queued calls on the calling thread; wait up to `timeout` if there are none.

        Raises:
            UsageError: The library's thread runs the callbacks, or the caller is a callback.
        """
        if self._thread is not None:
            raise UsageError("pump() needs a connection made with callbacks='pumped'")
        if self.is_running_here():
            raise UsageError("pump() cannot be called in a callback: pump() is running it")
        return self._pump(timeout)

    def run_until(self, future: concurrent.futures.Future[_Result]) -> _Result:
        """Wait for a result; without a callback thread, run callbacks meanwhile.

        Raises:
            NotOpen: Another thread closed the connection first.
        """
        if self._thread is None:
            future.add_done_callback(lambda _: self._wake())
            while not future.done():
                self._pump(None, future.done)
        try:
            return result_of(future)
        except concurrent.futures.CancelledError:
            raise NotOpen("the connection was closed meanwhile") from None

    def teller(self, on_status: StatusCallback) -> StatusCallback:
        """Return a status callback that queues `on_status` here instead of calling it directly."""

        def tell(status: Status) -> None:
            try:
                on_status(status)
            except Exception:
                self._reporter.logger.exception(
                    "%s: the status callback raised", self._reporter.label
                )

        return lambda status: self.put_news(tell, status)

    def discard(self) -> None:
        """From now on drop messages instead of passing them to callbacks."""
        self.is_discarding = True

    def stop(self) -> None:
        """End after the queued calls, and wait for that unless called from a callback."""
        self.end()
        if self._thread is not None and not self.is_running_here():
            self._thread.join(STOP_S)

    def end(self) -> None:
        """End after the queued calls, without waiting."""
        self._due.append(None)
        self._wake()

    def _run(self) -> None:
        self._runner = threading.get_ident()
        due = self._due
        while True:
            while due:
                item = due.popleft()
                if item is None:
                    return
                call, argument = item
                try:
                    call(argument)
                except BaseException as error:
                    # Not even sys.exit() may end this thread: later callbacks would never run.
                    self._reporter.handler_failed("the connection", error)
            with self._changed:
                self._wait(lambda: bool(due), None)

    def _pump(self, timeout: float | None, is_over: Callable[[], bool] = lambda: False) -> int:
        with self._changed:
            # While another thread runs callbacks, this one has nothing to do.
            self._wait(lambda: is_over() or (bool(self._due) and self._runner is None), timeout)
            if self._runner is not None:
                return 0
            self._runner = threading.get_ident()
        try:
            return self._run_due()
        finally:
            self._runner = None
            self._wake()

    def _wait(self, is_ready: Callable[[], bool], timeout: float | None) -> None:
        """Wait, with the lock held, until `is_ready` or the timeout."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._is_anyone_asleep = True
            if is_ready():
                return
            left_s = None if deadline is None else deadline - time.monotonic()
            if left_s is not None and left_s <= 0:
                return
            self._changed.wait(piece_of(left_s))

    def _wake(self) -> None:
        with self._changed:
            self._is_anyone_asleep = False
            self._changed.notify_all()

    def _run_due(self) -> int:
        # Calls that are added meanwhile are left to the next pump(): this one must return.
        count = 0
        for _ in range(len(self._due)):
            item = self._due.popleft()
            if item is None:
                # The end of the queue stays, so that later pump() calls return at once.
                self._due.append(None)
                break
            call, argument = item
            done = call(argument)
            # One call may cover several messages.
            count += done if type(done) is int else 1
        return count

    def _tell(self, news: Item) -> None:
        with self._news_lock:
            self._news -= 1
        call, argument = news
        call(argument)
