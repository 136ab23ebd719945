"""Queue of one asyncio subscription: received messages and gaps, in order."""

import asyncio
import contextvars
import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

from weft.client.options import SubscriptionOptions
from weft.client.received import AsyncPublisher, AsyncReceived, async_received, frame_of
from weft.client.status import Gap
from weft.client.subscriptions.context_check import is_changed
from weft.client.subscriptions.flow_control import Reading
from weft.client.subscriptions.receive_window import ReceiveWindow

_RELEASED_TOGETHER = 64
_MUCH_BYTES = 64 << 10


class AsyncQueue:
    """Bounded queue; the sink of a subscription.

    `on_news` is called when an item arrives at an idle queue; it starts the handler's task.
    """

    def __init__(
        self, reading: Reading, wish: SubscriptionOptions, on_news: Callable[[], object]
    ) -> None:
        self.is_ended = False
        self._reading = reading
        self._intake: ReceiveWindow = reading.intake(wish.queue_bytes, is_member=bool(wish.group))
        self._on_gap = wish.on_gap
        self._on_news = on_news
        self._refused = 0
        # Batches of frames as received; the current batch, and the index of its next frame.
        self._items: deque[list[bytes] | Gap] = deque()
        self._run: list[bytes] = []
        self._at = 0
        # The message that the handler is processing.
        self._given: AsyncReceived | None = None
        # A handler runs in a copy of the context that it was registered in.
        self.base = contextvars.copy_context()
        self._news = asyncio.Event()
        # No notification while earlier items are still there to be taken.
        self._is_idle = True
        self._done = 0
        self._done_bytes = 0

    @property
    def intake(self) -> ReceiveWindow:
        """The receive window that bounds it."""
        return self._intake

    def put(self, frames: list[bytes]) -> None:
        """Add a batch of received frames."""
        if self.is_ended:
            return
        size = 0
        for frame in frames:
            size += len(frame)
        if self._refused or not self._intake.admit_all(size, len(frames)):
            self._put_each(frames)
        else:
            self._items.append(frames)
        if self._is_idle and self._items:
            self._tell()

    def missed(self, gap: Gap) -> None:
        """Add a gap, if `on_gap` is set and there is space."""
        if self._on_gap is None or self.is_ended or not self._intake.admit(0):
            return
        self._items.append(gap)
        self._tell()

    def ended(self) -> None:
        """End the stream; queued items may still be taken."""
        self.is_ended = True
        self._tell()

    def clear(self) -> None:
        """Drop all items and release the receive window; called on close."""
        self._items.clear()
        self._run = []
        self._at = 0
        self._reading.leave(self._intake)

    def take(self) -> bytes | None:
        """Return the next message, or None; release() it when it is processed.

        Calls `on_gap` for gaps in front of it, and passes on what that raises.
        """
        while True:
            if self._at < len(self._run):
                frame = self._run[self._at]
                self._at += 1
                return frame
            if not self._items:
                self._run = []
                self._at = 0
                self._is_idle = True
                return None
            self._turn_to(self._items.popleft())

    def handle(self, handler: Callable[[AsyncReceived], object], connection: AsyncPublisher) -> Any:
        """Pass queued messages to a handler, one by one; return its first awaitable, or None.

        After an awaitable, and after an exception, the caller must call settle(). Stops if the
        handler changed the context: the next call must run in a new one.
        """
        while not is_changed(self.base):
            frame = self.take()
            if frame is None:
                return None
            message = async_received(frame, connection)
            self._given = message
            result = handler(message)
            if result is not None and inspect.isawaitable(result):
                return result
            self._given = None
            self.release(frame)
        return None

    def given(self) -> AsyncReceived | None:
        """The message that the handler was given and has not finished, or None."""
        return self._given

    def settle(self) -> None:
        """Release the message that the handler was given; it has returned or raised."""
        message, self._given = self._given, None
        if message is not None:
            self.release(frame_of(message))

    def release(self, frame: bytes) -> None:
        """Count a taken message as processed; the window is credited per 64 messages or 64 KiB."""
        self._done += 1
        self._done_bytes += len(frame)
        if self._done >= _RELEASED_TOGETHER or self._done_bytes > _MUCH_BYTES or self._is_empty():
            self._hand_in()

    def pause(self) -> bool:
        """Notify on the next item, as no consumer is running; return whether one is queued."""
        self._is_idle = self._is_empty()
        return not self._is_idle

    async def wait(self) -> bool:
        """Wait for an item; return False if the stream has ended."""
        while self._is_empty():
            if self.is_ended:
                return False
            self._news.clear()
            self._is_idle = True
            await self._news.wait()
        return True

    def _is_empty(self) -> bool:
        return self._at >= len(self._run) and not self._items

    def _put_each(self, frames: list[bytes]) -> None:
        """Add frames one by one, as long as there is space, and count those refused."""
        for frame in frames:
            if not self._intake.admit(len(frame)):
                self._refused += 1
                self._reading.overflowed(self._refused)
                continue
            if self._refused:
                self._items.append(self._intake.gap(self._refused))
                self._refused = 0
            self._items.append([frame])

    def _turn_to(self, item: list[bytes] | Gap) -> None:
        if type(item) is list:
            self._run = item
            self._at = 0
            return
        # Credited with the messages before it: it may be the last item.
        self._done += 1
        self._hand_in()
        if self._on_gap is not None and isinstance(item, Gap):
            self._on_gap(item)

    def _hand_in(self) -> None:
        count, size = self._done, self._done_bytes
        self._done = 0
        self._done_bytes = 0
        self._intake.release(size, count)

    def _tell(self) -> None:
        self._is_idle = False
        self._news.set()
        self._on_news()
