"""Subscriptions of a blocking connection, and iteration over their messages."""

import asyncio
import contextlib
import contextvars
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from weft.client.connection.engine import Engine
from weft.client.options import SubscriptionOptions
from weft.client.received import BlockingReceived, Publisher, blocking_received
from weft.client.requests.calls import Calls
from weft.client.status import Gap
from weft.client.subscriptions.iteration import Loop, Loops
from weft.client.subscriptions.receive_window import ReceiveWindow
from weft.client.subscriptions.registry import SubscriptionChannel, SubscriptionState
from weft.client.subscriptions.replay import Replay
from weft.client.sync.callbacks import Callbacks
from weft.client.sync.dispatch_batch import Handler, Handling
from weft.client.sync.loop_thread import Background
from weft.client.sync.queue import Mailbox
from weft.errors import NotOpen, TimedOut, UsageError


@dataclass(frozen=True, slots=True)
class SyncSubscriptionContext:
    """Context of a subscription: its connection and, if it is in one, its channel."""

    connection: Publisher
    engine: Engine
    calls: Calls
    background: Background
    callbacks: Callbacks
    loops: Loops
    place: SubscriptionChannel | None = None


class Subscription:
    """A subscription; close() ends it.

    A handler runs where the callbacks of the connection run. Without a handler:
    `for message in subscription`, on any thread. A queue that is full and not consumed stops the
    whole connection from reading. drain() waits for the body of a loop, but not for the processing
    of a message returned by next().
    """

    def __init__(
        self,
        home: SyncSubscriptionContext,
        patterns: str | Iterable[str],
        wish: SubscriptionOptions,
        handler: Handler | None,
        context: contextvars.Context | None = None,
    ) -> None:
        """Start, on the loop's thread. A handler runs in copies of the context."""
        self._home = home
        self._on_gap = wish.on_gap
        self._is_discarding = False
        self._is_left = False
        self._refused = 0
        replay = None if wish.since is None else Replay(self, wish.since)
        self._listening = SubscriptionState(patterns, wish, replay or self, home.place)
        self._replaying: asyncio.Task[None] | None = None
        self._mailbox: Mailbox | None = None
        self._handling: Handling | None = None
        if handler is None:
            self._intake = home.engine.reading.intake(wish.queue_bytes, is_member=bool(wish.group))
            self._mailbox = Mailbox()
            self._put = self._mailbox.put
        else:
            self._intake = home.callbacks.intake
            self._put = home.callbacks.put
            self._handling = Handling(
                handler, home.connection, home.callbacks, self._failed, context
            )
        try:
            if replay is None:
                home.engine.listen(self._listening)
            else:
                run = replay.run(self._listening, home.engine, home.calls)
                self._replaying = home.engine.loop.create_task(run)
        except BaseException:
            self._leave()
            raise

    @property
    def intake(self) -> ReceiveWindow:
        """The receive window that bounds it."""
        return self._intake

    @property
    def patterns(self) -> list[str]:
        """The subscribed patterns."""
        return list(self._listening.names)

    @property
    def is_open(self) -> bool:
        """Whether the subscription can still receive messages."""
        return self._listening.is_open

    async def confirmed(self) -> None:
        """Wait, on the loop's thread, for the gateway's confirmation; end if it is refused."""
        try:
            await self._home.calls.ready(self._listening, None)
        except BaseException:
            self._leave()
            raise

    def next(self, timeout: float | None = None) -> BlockingReceived:
        """Return the next message; without a timeout, wait without limit.

        Raises:
            TimedOut: No message within the timeout.
            NotOpen: The subscription is closed.
            WeftError: The gateway refused the subscription.
        """
        frame = self.next_frame(timeout)
        self._intake.release(len(frame))
        return blocking_received(frame, self._home.connection)

    def next_frame(self, timeout: float | None) -> bytes:
        """Return the frame of the next message, not yet released from the window; see next()."""
        mailbox = self._iterable()
        self._home.background.check()
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            try:
                item = mailbox.take(left)
            except queue.Empty:
                names = ", ".join(self.patterns)
                raise TimedOut(f"no message to {names} in {timeout} s") from None
            if item is None:
                raise self._listening.error or NotOpen(
                    f"the subscription to {', '.join(self.patterns)} is closed"
                )
            call, argument = item
            frame = call(argument)
            if isinstance(frame, bytes):
                return frame

    def close(self) -> None:
        """Unsubscribe and drop the queued messages."""
        self._is_discarding = True
        if self._handling is not None:
            self._handling.is_discarding = True
        if not self._is_left:
            # Already closed with the connection, or in a forked process.
            with contextlib.suppress(NotOpen):
                self._home.background.run(self._close())

    def __iter__(self) -> Iterator[BlockingReceived]:
        self._iterable()
        return _BlockingLoop(self._home, self, self._intake)

    def __next__(self) -> BlockingReceived:
        try:
            return self.next()
        except NotOpen:
            raise StopIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Called by the engine, on the loop's thread.

    def put(self, frames: list[bytes]) -> None:
        """Add a batch of received frames."""
        if not self._refused and self._intake.admit_all(sum(map(len, frames)), len(frames)):
            self._put_all(frames)
            return
        for frame in frames:
            if not self._intake.admit(len(frame)):
                self._refused += 1
                self._home.engine.reading.overflowed(self._refused)
                continue
            if self._refused:
                self._put(self._tell_gap, self._intake.gap(self._refused))
                self._refused = 0
            self._put_all([frame])

    def missed(self, gap: Gap) -> None:
        """Add a gap, if `on_gap` is set and there is space."""
        if self._on_gap is not None and self._intake.admit(0):
            self._put(self._tell_gap, gap)

    def ended(self) -> None:
        """End the stream; queued items may still be taken."""
        if self._mailbox is not None:
            self._mailbox.end()

    def _put_all(self, frames: list[bytes]) -> None:
        if self._handling is not None:
            self._put(self._handling.run, frames)
            return
        for frame in frames:
            self._put(self._receive, frame)

    async def _close(self) -> None:
        self._leave()

    def _leave(self) -> None:
        self._is_left = True
        if self._replaying is not None:
            self._replaying.cancel()
        self._home.engine.unlisten(self._listening)
        if self._mailbox is not None:
            self._home.engine.reading.leave(self._intake)

    # Called by the thread that takes the messages.

    def _receive(self, frame: bytes) -> bytes | None:
        if self._is_discarding:
            self._intake.release(len(frame))
            return None
        return frame

    def _tell_gap(self, gap: Gap) -> None:
        self._intake.release(0)
        if self._on_gap is None or self._is_discarding:
            return
        try:
            self._on_gap(gap)
        except Exception as error:
            if self._mailbox is not None:
                raise
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._home.engine.reporter.handler_failed(", ".join(self.patterns), error)

    def _iterable(self) -> Mailbox:
        if self._mailbox is None:
            raise UsageError("a subscription with a handler is not iterated over")
        return self._mailbox


async def subscribed(
    home: SyncSubscriptionContext,
    patterns: str | Iterable[str],
    wish: SubscriptionOptions,
    handler: Handler | None,
    context: contextvars.Context,
) -> Subscription:
    """Return a new subscription that the gateway has confirmed."""
    subscription = Subscription(home, patterns, wish, handler, context)
    await subscription.confirmed()
    return subscription


class _BlockingLoop(Loop):
    """The iterator of one `for`."""

    def __init__(
        self, home: SyncSubscriptionContext, subscription: Subscription, intake: ReceiveWindow
    ) -> None:
        super().__init__(home.loops, lambda frame: intake.release(len(frame)))
        self._connection = home.connection
        self._subscription = subscription

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> BlockingReceived:
        self.finish()
        try:
            frame = self._subscription.next_frame(None)
        except NotOpen:
            raise StopIteration from None
        self.begin(frame, threading.get_ident())
        return blocking_received(frame, self._connection)
