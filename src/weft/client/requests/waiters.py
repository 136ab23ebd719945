"""Coroutines that await one answer, or several."""

import asyncio

from weft.errors import ConnectionLost, Overloaded, TimedOut, WeftError
from weft.wire.request_failure import failure_in, is_failure


class Single:
    """Awaits one answer, a frame: `await` its `answer`.

    That raises ConnectionLost if the connection was lost, and its cause says why; or whatever
    WeftError the gateway said instead.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Await an answer; another thread than the loop's names the loop."""
        self.is_lost = False
        loop = loop or asyncio.get_running_loop()
        self.answer: asyncio.Future[bytes] = loop.create_future()

    def answered(self, frame: bytes) -> None:
        """The answer came."""
        if is_failure(frame):
            self.failed(failure_in(frame))
        elif not self.answer.done():
            self.answer.set_result(frame)

    def failed(self, error: WeftError) -> None:
        """There will be none."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def expired(self, about: str, limit_s: float) -> None:
        """There was none in time."""
        self.failed(TimedOut(f"{about} after {limit_s} s"))

    def lost(self, error: WeftError) -> None:
        """The connection ended; the same may be asked on the next one."""
        self.is_lost = True
        self.failed(_own(error))


class Several:
    """Awaits answers until whoever gathers them has enough; bounded in bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self.frames: list[bytes] = []
        self._room = limit_bytes
        self._error: WeftError | None = None
        self._news = asyncio.Event()

    async def more(self) -> None:
        """Wait for the next answer.

        Raises:
            WeftError: the connection was lost, or the answers are over the limit.
        """
        await self._news.wait()
        self._news.clear()
        if self._error is not None:
            raise self._error

    def answered(self, frame: bytes) -> None:
        """An answer came."""
        self._room -= len(frame)
        if self._room < 0:
            self.failed(Overloaded(f"{len(self.frames)} answers are all that can be held"))
        elif self._error is None:
            self.frames.append(frame)
            self._news.set()

    def failed(self, error: WeftError) -> None:
        """There will be no more."""
        self._error = error
        self._news.set()

    def lost(self, error: WeftError) -> None:
        """The connection ended."""
        self.failed(_own(error))


def _own(error: WeftError) -> ConnectionLost:
    """A copy: one that a thousand coroutines raise would collect the tracebacks of them all.

    Whatever ended the connection, whoever waited has lost it, and may try again.
    """
    if isinstance(error, ConnectionLost):
        own = type(error)(*error.args)
    else:
        own = ConnectionLost(f"the connection was lost: {error}")
    own.__cause__ = error
    return own
