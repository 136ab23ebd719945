"""One event loop in one daemon thread, for callers that have none."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import TypeVar

from weft.errors import NotOpen

_Result = TypeVar("_Result")

# How long the thread may take to end when it is told to.
STOP_S = 10.0


class Background:
    """Runs coroutines for other threads; stop() it."""

    def __init__(self, name: str) -> None:
        self._started: concurrent.futures.Future[asyncio.AbstractEventLoop]
        self._started = concurrent.futures.Future()
        self._stopping = asyncio.Event()
        self._lock = threading.Lock()
        self._is_stopped = False
        # A daemon: a program that forgets to close still ends.
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()
        self._loop = self._started.result()

    def submit(
        self, work: Coroutine[object, object, _Result]
    ) -> concurrent.futures.Future[_Result]:
        """Begin a coroutine.

        Raises:
            NotOpen: the loop was stopped.
        """
        with self._lock:
            if self._is_stopped:
                work.close()
                raise NotOpen("the connection is closed")
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[object, object, _Result]) -> _Result:
        """Run a coroutine to its end, and wait for it; an interrupted wait cancels it.

        Raises:
            NotOpen: the loop was stopped.
        """
        future = self.submit(work)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise NotOpen("the connection was closed meanwhile") from None
        except BaseException:
            future.cancel()
            raise

    def defer(self, call: Callable[..., object], *arguments: object) -> None:
        """Make a call on the loop, soon; after the end there is nothing left to call."""
        with self._lock:
            if not self._is_stopped:
                self._loop.call_soon_threadsafe(call, *arguments)

    def stop(self) -> None:
        """End the loop, cancel what still runs on it, and wait for the thread."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(STOP_S)

    def _main(self) -> None:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._started.set_result(asyncio.get_running_loop())
        await self._stopping.wait()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415  # faster, but nothing depends on it
    except ImportError:
        return None
    return uvloop.new_event_loop
