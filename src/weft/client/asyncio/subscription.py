"""Subscriptions of an asyncio connection, and iteration over their messages."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextvars import Context
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from weft.client.asyncio.queue import AsyncQueue
from weft.client.connection.engine import Engine
from weft.client.options import SubscriptionOptions
from weft.client.received import FAILED, AsyncPublisher, AsyncReceived, async_received
from weft.client.requests.calls import Calls
from weft.client.subscriptions.context_check import is_changed
from weft.client.subscriptions.iteration import Loop, Loops
from weft.client.subscriptions.registry import SubscriptionChannel, SubscriptionState
from weft.client.subscriptions.replay import Replay
from weft.errors import NotOpen, TimedOut, UsageError, WeftError

# How long a cancelled handler may take to end.
STOP_S = 2.0


Handler = Callable[[AsyncReceived], object]


@dataclass(frozen=True, slots=True)
class AsyncSubscriptionContext:
    """Context of a subscription: its connection and, if it is in one, its channel.

    `own` starts a task, in a context if one is given, and keeps a reference until it ends.
    """

    connection: AsyncPublisher
    engine: Engine
    calls: Calls
    own: Callable[[Coroutine[object, object, None], Context | None], asyncio.Task[None]]
    loops: Loops
    place: SubscriptionChannel | None = None


class AsyncSubscription:
    """A subscription; close() ends it.

    With a handler, a plain or an async function, a task that starts with the first message calls
    it for one message at a time. Without a handler: `async for message in subscription`. A queue
    that is full and not consumed stops the whole connection from reading. drain() waits for the
    body of a loop, but not for the processing of a message returned by next().
    """

    def __init__(
        self,
        home: AsyncSubscriptionContext,
        patterns: str | Iterable[str],
        wish: SubscriptionOptions,
        handler: Handler | None,
    ) -> None:
        self._home = home
        self._handler = handler
        self._queue = AsyncQueue(home.engine.reading, wish, self._start)
        self._task: asyncio.Task[None] | None = None
        self._replaying: asyncio.Task[None] | None = None
        try:
            if wish.since is None:
                self._listening = SubscriptionState(patterns, wish, self._queue, home.place)
                home.engine.listen(self._listening)
            else:
                replay = Replay(self._queue, wish.since)
                self._listening = SubscriptionState(patterns, wish, replay, home.place)
                self._replaying = home.own(
                    replay.run(self._listening, home.engine, home.calls), None
                )
        except BaseException:
            self._queue.clear()
            raise

    @property
    def patterns(self) -> list[str]:
        """The subscribed patterns."""
        return list(self._listening.names)

    @property
    def is_open(self) -> bool:
        """Whether the subscription can still receive messages."""
        return self._listening.is_open

    async def ready(self, timeout: float | None = None) -> None:
        """Wait until the gateway has confirmed the subscription.

        Raises:
            WeftError: The gateway refused it.
            TimedOut: No confirmation within the timeout.
        """
        await self._home.calls.ready(self._listening, timeout)

    async def next(self, timeout: float | None = None) -> AsyncReceived:
        """Return the next message; without a timeout, wait without limit.

        Raises:
            TimedOut: No message within the timeout.
            NotOpen: The subscription is closed.
            WeftError: The gateway refused the subscription.
        """
        self._check_iterable()
        try:
            async with asyncio.timeout(timeout):
                return await anext(self)
        except StopAsyncIteration:
            raise NotOpen(f"the subscription to {', '.join(self.patterns)} is closed") from None
        except TimeoutError as error:
            raise TimedOut(f"no message to {', '.join(self.patterns)} in {timeout} s") from error

    async def close(self) -> None:
        """Unsubscribe and drop the queued messages."""
        self._home.engine.unlisten(self._listening)
        self._queue.clear()
        await stop(task for task in (self._task, self._replaying) if task is not None)

    def __aiter__(self) -> AsyncIterator[AsyncReceived]:
        self._check_iterable()
        return _AsyncLoop(self._home, self._queue, self._listening)

    async def __anext__(self) -> AsyncReceived:
        frame = await _next_frame(self._queue, self._listening)
        self._queue.release(frame)
        return async_received(frame, self._home.connection)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _check_iterable(self) -> None:
        if self._handler is not None:
            raise UsageError("a subscription with a handler is not iterated over")

    def _start(self) -> None:
        if self._task is None and self._handler is not None:
            self._task = self._home.own(self._handle(self._handler), self._queue.base.copy())
            self._task.add_done_callback(self._stopped)

    def _stopped(self, _: asyncio.Task[None]) -> None:
        # A handler that cancels its own task ends only that task; queued messages are still due.
        self._task = None
        if self._queue.pause() and not self._home.engine.is_closing:
            self._start()

    async def _handle(self, handler: Handler) -> None:
        queue = self._queue
        connection = self._home.connection
        engine = self._home.engine
        while not engine.is_closing:
            try:
                awaited = queue.handle(handler, connection)
                if awaited is not None:
                    await awaited
                elif is_changed(queue.base):
                    # The handler changed context variables: the next message runs in a new context.
                    return
                elif not await queue.wait():
                    return
            except (Exception, asyncio.CancelledError) as error:
                if _is_told_to_stop(error):
                    raise
                # An awaitable of the handler was cancelled, not the handler itself.
                engine.reporter.handler_failed(", ".join(self.patterns), error)
                await self._fail(queue.given())
            finally:
                queue.settle()

    async def _fail(self, message: AsyncReceived | None) -> None:
        """Answer a request with a generic error; the reason is only in the local log."""
        if message is None or not message.is_waiting:
            return
        try:
            await message.respond_error(FAILED)
        except WeftError as error:
            self._home.engine.reporter.handler_failed(", ".join(self.patterns), error)


class _AsyncLoop(Loop):
    """The iterator of one `async for`."""

    def __init__(
        self, home: AsyncSubscriptionContext, queue: AsyncQueue, listening: SubscriptionState
    ) -> None:
        super().__init__(home.loops, queue.release)
        self._connection = home.connection
        self._queue = queue
        self._listening = listening

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AsyncReceived:
        self.finish()
        frame = self._queue.take()
        if frame is None:
            frame = await _next_frame(self._queue, self._listening)
        self.begin(frame, asyncio.current_task())
        return async_received(frame, self._connection)


async def _next_frame(queue: AsyncQueue, listening: SubscriptionState) -> bytes:
    while True:
        frame = queue.take()
        if frame is not None:
            return frame
        if not await queue.wait():
            if listening.error is not None:
                raise listening.error
            raise StopAsyncIteration


def _is_told_to_stop(error: BaseException) -> bool:
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


async def stop(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel handler tasks, except the calling one, and wait up to `STOP_S` for their end."""
    others = set(tasks) - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=STOP_S)
