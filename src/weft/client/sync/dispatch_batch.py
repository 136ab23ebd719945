"""Call a handler of a blocking subscription for batches of messages, on the callback thread."""

import contextvars
import functools
import inspect
from collections.abc import Callable

from weft.client.received import FAILED, BlockingReceived, Publisher, blocking_received
from weft.client.subscriptions.context_check import is_changed
from weft.client.subscriptions.receive_window import ReceiveWindow
from weft.client.sync.callbacks import Callbacks
from weft.errors import UsageError, WeftError

_RELEASED_TOGETHER = 64
# Fewer of large messages: a late release delays reading.
_MUCH_BYTES = 64 << 10

Handler = Callable[[BlockingReceived], object]


class Handling:
    """Calls a handler for one message at a time; passes its exceptions to `report`.

    `is_discarding` may be set at any time: from then on messages are dropped.
    """

    def __init__(
        self,
        handler: Handler,
        connection: Publisher,
        callbacks: Callbacks,
        report: Callable[[Exception], object],
        base: contextvars.Context | None = None,
    ) -> None:
        self.is_discarding = False
        self._handler = handler
        self._connection = connection
        self._callbacks = callbacks
        self._intake: ReceiveWindow = callbacks.intake
        self._report = report
        # A handler runs in a copy of the context that it was registered in.
        self._base = base or contextvars.copy_context()

    def run(self, frames: list[bytes]) -> int:
        """Handle consecutive messages; return how many were handled.

        Raises the exception of an interrupted handler, such as KeyboardInterrupt. After it, or once
        the handler has changed its context, the remaining messages are queued again.
        """
        # mypy does not know that Context.run() returns the result of the function.
        count: int = self._base.copy().run(self.run_here, frames)
        return count

    def run_here(self, frames: list[bytes]) -> int:
        """Handle messages in the current context, a copy of the handler's; see run()."""
        count = 0
        size = 0
        released = 0
        try:
            for frame in frames:
                count += 1
                size += len(frame)
                self._handle(frame)
                # The receive window is credited per 64 messages or 64 KiB.
                if count - released >= _RELEASED_TOGETHER or size > _MUCH_BYTES:
                    self._intake.release(size, count - released)
                    released = count
                    size = 0
                if is_changed(self._base):
                    break
        finally:
            if count > released:
                self._intake.release(size, count - released)
            if count < len(frames):
                self._callbacks.put_back(self.run, frames[count:])
        return count

    def _handle(self, frame: bytes) -> None:
        if not (self.is_discarding or self._callbacks.is_discarding):
            self._call(blocking_received(frame, self._connection))

    def _call(self, message: BlockingReceived) -> None:
        try:
            result = self._handler(message)
            if result is not None:
                _refuse_awaitable(result)
        except Exception as error:
            self._report(error)
            if message.is_waiting:
                self._fail(message)

    def _fail(self, message: BlockingReceived) -> None:
        """Answer a request with a generic error; the reason is only in the local log."""
        try:
            message.respond_error(FAILED)
        except WeftError as error:
            self._report(error)


def check_plain(handler: Handler | None) -> None:
    """Reject an async handler.

    Raises:
        UsageError: The handler is an async function.
    """
    called = handler.func if isinstance(handler, functools.partial) else handler
    if inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(
        getattr(called, "__call__", None)  # noqa: B004  # not whether: which
    ):
        raise UsageError(
            "a blocking connection does not await its handlers: use a plain function, or"
            " weft.connect()"
        )


def _refuse_awaitable(result: object) -> None:
    """Reject an awaitable that a handler returned."""
    if not inspect.isawaitable(result):
        return
    if inspect.iscoroutine(result):
        result.close()
    raise UsageError(
        f"the handler returned {type(result).__name__}, which a blocking connection does not await"
    )
