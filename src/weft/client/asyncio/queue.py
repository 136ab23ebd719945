"""What an asyncio subscription has received and not yet taken: messages and gaps, in order."""

import asyncio
import contextvars
import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

from weft.client.options import Wish
from weft.client.received import AsyncPublisher, AsyncReceived, async_received, frame_of
from weft.client.status import Gap
from weft.client.subscriptions.context_check import is_changed
from weft.client.subscriptions.flow_control import Reading
from weft.client.subscriptions.receive_window import Intake

_RELEASED_TOGETHER = 64
_MUCH_BYTES = 64 << 10


class AsyncQueue:
    """A bounded queue; the sink of a subscription.

    `on_news` is called when something is put into it, for whoever does not wait for it.
    """

    def __init__(self, reading: Reading, wish: Wish, on_news: Callable[[], object]) -> None:
        self.is_ended = False
        self._reading = reading
        self._intake: Intake = reading.intake(wish.queue_bytes, is_member=bool(wish.group))
        self._on_gap = wish.on_gap
        self._on_news = on_news
        self._refused = 0
        # Frames as they came, several together; the first several, and which of them is next.
        self._items: deque[list[bytes] | Gap] = deque()
        self._run: list[bytes] = []
        self._at = 0
        # What the handler has.
        self._given: AsyncReceived | None = None
        # A handler runs in a copy of the context that it was given in.
        self.base = contextvars.copy_context()
        self._news = asyncio.Event()
        # Nobody is told of a message while the one before it is still there to be taken.
        self._is_idle = True
        self._done = 0
        self._done_bytes = 0

    @property
    def intake(self) -> Intake:
        """What bounds it."""
        return self._intake

    def put(self, frames: list[bytes]) -> None:
        """Messages came."""
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
        """Messages did not come."""
        if self._on_gap is None or self.is_ended or not self._intake.admit(0):
            return
        self._items.append(gap)
        self._tell()

    def ended(self) -> None:
        """Nothing more comes; what is here may still be taken."""
        self.is_ended = True
        self._tell()

    def clear(self) -> None:
        """Throw away what is here; whoever closes does."""
        self._items.clear()
        self._run = []
        self._at = 0
        self._reading.leave(self._intake)

    def take(self) -> bytes | None:
        """The next message, if there is one; release() it when it is dealt with.

        A gap before it is told to whoever wants to know, who may raise.
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
        """Give a handler what is here, one after the other; what it wants awaited, or None.

        Of what it was given last it has to say settle(), unless nothing is left. If the handler
        has changed the context, nothing more is given until the next call is in another one.
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
        """What the handler was given last, and has not dealt with."""
        return self._given

    def settle(self) -> None:
        """The handler has dealt with what it was given last, well or not."""
        message, self._given = self._given, None
        if message is not None:
            self.release(frame_of(message))

    def release(self, frame: bytes) -> None:
        """A message that was taken is dealt with; the intake is told of several together."""
        self._done += 1
        self._done_bytes += len(frame)
        if self._done >= _RELEASED_TOGETHER or self._done_bytes > _MUCH_BYTES or self._is_empty():
            self._hand_in()

    def pause(self) -> bool:
        """Nobody takes for now: tell of what comes next; True if there is something already."""
        self._is_idle = self._is_empty()
        return not self._is_idle

    async def wait(self) -> bool:
        """Wait until there is something to take; False if nothing more comes."""
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
        """There is not room for all, or was not before: see how far it goes."""
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
        # Told of together with the messages before it, of which it may be the last.
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
