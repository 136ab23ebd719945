"""What the blocking face has received and not yet taken; the loop's thread puts, others take.

An item is a call to make and what to make it with, so that whoever takes it, an iterating thread,
the library's own or one that pumps, needs to know nothing else.
"""

import queue
import threading
from collections.abc import Callable
from typing import Any

from weft.client.intake import Intake

Item = tuple[Callable[[Any], object], Any]

# News of the connection that nobody has taken; each is small, but they may come for ever.
NEWS_MAX = 1024


class Mailbox:
    """A queue between threads, bounded by an intake, and for news in number."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake
        self.news_lost = 0
        # In C, and fast. It has no bound: the intake is one.
        self._items: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._news = 0
        self._lock = threading.Lock()

    def put(self, call: Callable[[Any], object], argument: object) -> None:
        """Put a call that the intake has admitted."""
        self._items.put((call, argument))

    def put_news(self, call: Callable[[Any], object], argument: object) -> None:
        """Put a call that no intake counts; if too many wait already, only count it."""
        with self._lock:
            if self._news >= NEWS_MAX:
                self.news_lost += 1
                return
            self._news += 1
        self._items.put((self._tell, (call, argument)))

    def end(self) -> None:
        """Nothing more comes after what is here."""
        self._items.put(None)

    def take(self, timeout: float | None) -> Item | None:
        """The next call, or None at the end, for every taker.

        Raises:
            queue.Empty: nothing came in time.
        """
        item = self._items.get(timeout=timeout) if timeout != 0 else self._items.get_nowait()
        if item is None:
            self._items.put(None)
        return item

    def __len__(self) -> int:
        return self._items.qsize()

    def _tell(self, news: Item) -> None:
        with self._lock:
            self._news -= 1
        call, argument = news
        call(argument)
