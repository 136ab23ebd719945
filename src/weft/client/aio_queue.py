"""What an asyncio subscription has received and not yet taken: messages and gaps, in order."""

import asyncio
from collections import deque
from collections.abc import Callable

from weft.client.options import Wish
from weft.client.reading import Reading
from weft.client.status import Gap

_RELEASED_TOGETHER = 64
_MUCH_BYTES = 64 << 10


class AsyncQueue:
    """A bounded queue; the sink of a subscription.

    `on_news` is called when something is put into it, for whoever does not wait for it.
    """

    def __init__(self, reading: Reading, wish: Wish, on_news: Callable[[], object]) -> None:
        self.is_ended = False
        self._reading = reading
        self._intake = reading.intake(wish.queue_bytes)
        self._on_gap = wish.on_gap
        self._on_news = on_news
        self._refused = 0
        self._items: deque[bytes | Gap] = deque()
        self._news = asyncio.Event()
        # Nobody is told of a message while the one before it is still there to be taken.
        self._is_idle = True
        self._done = 0
        self._done_bytes = 0

    def put(self, frame: bytes) -> None:
        """A message came."""
        if self.is_ended:
            return
        if not self._intake.admit(len(frame)):
            self._refused += 1
            self._reading.overflowed(self._refused)
            return
        if self._refused:
            self._items.append(self._intake.gap(self._refused))
            self._refused = 0
        self._items.append(frame)
        if self._is_idle:
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
        self._reading.leave(self._intake)

    def take(self) -> bytes | None:
        """The next message, if there is one; release() it when it is dealt with.

        A gap before it is told to whoever wants to know, who may raise.
        """
        items = self._items
        while items:
            item = items.popleft()
            if type(item) is bytes:
                return item
            # Told of together with the messages before it, of which it may be the last.
            self._done += 1
            self._hand_in()
            if self._on_gap is not None and isinstance(item, Gap):
                self._on_gap(item)
        self._is_idle = True
        return None

    def release(self, frame: bytes) -> None:
        """A message that was taken is dealt with; the intake is told of several together."""
        self._done += 1
        self._done_bytes += len(frame)
        if self._done == _RELEASED_TOGETHER or not self._items or self._done_bytes > _MUCH_BYTES:
            self._hand_in()

    def pause(self) -> bool:
        """Nobody takes for now: tell of what comes next; True if there is something already."""
        self._is_idle = not self._items
        return not self._is_idle

    async def wait(self) -> bool:
        """Wait until there is something to take; False if nothing more comes."""
        while not self._items:
            if self.is_ended:
                return False
            self._news.clear()
            self._is_idle = True
            await self._news.wait()
        return True

    def _hand_in(self) -> None:
        count, size = self._done, self._done_bytes
        self._done = 0
        self._done_bytes = 0
        self._intake.release(size, count)

    def _tell(self) -> None:
        self._is_idle = False
        self._news.set()
        self._on_news()
