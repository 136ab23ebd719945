"""Event loop on a daemon thread, for callers without one.

A forked process has a copy of the loop but not the thread, and locks that the thread may have
held: there nothing runs, and nothing is waited for.
"""

import asyncio
import concurrent.futures
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from typing import TypeVar

from weft.client.sync.interruptible import result_of
from weft.errors import NotOpen

_Result = TypeVar("_Result")

# Limit on waiting for the thread to end.
STOP_S = 10.0

OPENED_ELSEWHERE = "the connection was opened in another process"


class Background:
    """Runs coroutines for other threads until stop()."""

    def __init__(self, name: str) -> None:
        self._started: concurrent.futures.Future[asyncio.AbstractEventLoop]
        self._started = concurrent.futures.Future()
        self._stopping = asyncio.Event()
        self._lock = threading.Lock()
        self._is_stopped = False
        self._is_copy = False
        self._on_fork: list[Callable[[], object]] = []
        self._last: asyncio.Task[None] | None = None
        _all.add(self)
        # A daemon thread: a program that does not close the connection can still exit.
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()
        self._loop = self._started.result()

    def submit(
        self, work: Coroutine[object, object, _Result]
    ) -> concurrent.futures.Future[_Result]:
        """Start a coroutine on the loop.

        Raises:
            NotOpen: The loop was stopped, or belongs to another process.
        """
        if self._is_copy:
            work.close()
        self.check()
        with self._lock:
            if self._is_stopped:
                work.close()
                raise NotOpen("the connection is closed")
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[object, object, _Result]) -> _Result:
        """Run a coroutine and return its result; interrupting the wait cancels it.

        Raises:
            NotOpen: The loop was stopped, or belongs to another process.
        """
        future = self.submit(work)
        try:
            return result_of(future)
        except concurrent.futures.CancelledError:
            raise NotOpen("the connection was closed meanwhile") from None
        except BaseException:
            future.cancel()
            raise

    def check(self) -> None:
        """Raise in a forked process.

        Raises:
            NotOpen: The loop belongs to another process.
        """
        if self._is_copy:
            raise NotOpen(OPENED_ELSEWHERE)

    def on_fork(self, call: Callable[[], object]) -> None:
        """Call `call` in every forked process, before any other code runs there."""
        self._on_fork.append(call)

    def defer(self, call: Callable[..., object], *arguments: object) -> None:
        """Schedule a call on the loop; ignored after the end."""
        if self._is_copy:
            return
        with self._lock:
            if not self._is_stopped:
                self._loop.call_soon_threadsafe(call, *arguments)

    def stop(self, timeout_s: float = STOP_S) -> None:
        """Stop the loop, cancel its tasks, and wait for the thread."""
        if self._is_copy:
            return
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(timeout_s)

    @property
    def is_usable(self) -> bool:
        """Whether it runs, and in this process."""
        return not (self._is_copy or self._is_stopped)

    def abandon(self, last: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run a last coroutine and stop, without waiting: for a finalizer.

        A finalizer may run on any thread, between any two instructions, so this takes no lock.
        ended() waits for the end.
        """
        _ending.add(self)
        self._loop.call_soon_threadsafe(self._end_after, last)

    def ended(self, timeout_s: float) -> None:
        """Wait until the thread has ended, at most `timeout_s`."""
        self._thread.join(timeout_s)

    def forked(self) -> None:
        """Mark this object as the copy in a forked process, which has no thread."""
        self._is_copy = True
        for call in self._on_fork:
            call()

    def _end_after(self, last: Callable[[], Coroutine[object, object, None]]) -> None:
        self._last = self._loop.create_task(last())
        self._last.add_done_callback(self._abandoned)

    def _abandoned(self, last: asyncio.Task[None]) -> None:
        with self._lock:
            self._is_stopped = True
        self._stopping.set()
        if not last.cancelled():
            # No caller is left: an exception goes to the loop's exception handler.
            last.result()

    def _main(self) -> None:
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self._serve())
        finally:
            _ending.discard(self)

    async def _serve(self) -> None:
        self._started.set_result(asyncio.get_running_loop())
        await self._stopping.wait()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415  # faster, but nothing depends on it
    except ImportError:
        return None
    return uvloop.new_event_loop


_all: weakref.WeakSet[Background] = weakref.WeakSet()
# Abandoned loops whose thread has not ended.
_ending: set[Background] = set()


def until_ended(deadline: float) -> None:
    """Wait for all abandoned loops, until a time of the monotonic clock."""
    for background in list(_ending):
        background.ended(max(deadline - time.monotonic(), 0.0))


def _forked() -> None:
    for background in list(_all):
        background.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
