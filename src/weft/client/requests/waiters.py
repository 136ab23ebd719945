"""Waiters for one answer or several."""

import asyncio

from weft.errors import ConnectionLost, Overloaded, TimedOut, WeftError
from weft.wire.request_failure import failure_in, is_failure


class Single:
    """Waiter for one answer, a frame: `await` its `answer`.

    Awaiting raises ConnectionLost if the connection was lost, with the reason as its cause, or the
    WeftError that the gateway sent.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Create the waiter; on other threads than the loop's, `loop` is required."""
        self.is_lost = False
        loop = loop or asyncio.get_running_loop()
        self.answer: asyncio.Future[bytes] = loop.create_future()

    def answered(self, frame: bytes) -> None:
        """Take the answer."""
        if is_failure(frame):
            self.failed(failure_in(frame))
        elif not self.answer.done():
            self.answer.set_result(frame)

    def failed(self, error: WeftError) -> None:
        """Fail with this error."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def expired(self, about: str, limit_s: float) -> None:
        """Fail with TimedOut."""
        self.failed(TimedOut(f"{about} after {limit_s} s"))

    def lost(self, error: WeftError) -> None:
        """Fail with ConnectionLost; the request may be sent again over the next connection."""
        self.is_lost = True
        self.failed(_own(error))


class Several:
    """Waiter that collects answers until the caller has enough; bounded in bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self.frames: list[bytes] = []
        self._room = limit_bytes
        self._error: WeftError | None = None
        self._news = asyncio.Event()

    async def more(self) -> None:
        """Wait for the next answer.

        Raises:
            WeftError: The connection was lost, or the answers exceed the limit.
        """
        await self._news.wait()
        self._news.clear()
        if self._error is not None:
            raise self._error

    def answered(self, frame: bytes) -> None:
        """Take an answer."""
        self._room -= len(frame)
        if self._room < 0:
            self.failed(
                Overloaded(f"the answers exceed queue_bytes after {len(self.frames)} answers")
            )
        elif self._error is None:
            self.frames.append(frame)
            self._news.set()

    def failed(self, error: WeftError) -> None:
        """Fail with this error."""
        self._error = error
        self._news.set()

    def lost(self, error: WeftError) -> None:
        """Fail with ConnectionLost."""
        self.failed(_own(error))


def _own(error: WeftError) -> ConnectionLost:
    """Return a copy: one shared by a thousand waiters would collect the tracebacks of them all.

    The copy is a ConnectionLost, whatever ended the connection, so callers may retry.
    """
    if isinstance(error, ConnectionLost):
        own = type(error)(*error.args)
    else:
        own = ConnectionLost(f"the connection was lost: {error}")
    own.__cause__ = error
    return own
