"""Waiting on the loop for room among what is yet to be sent."""

import asyncio
import functools
import weakref
from collections.abc import Coroutine

from weft.client.publish.pending_ack import Pending
from weft.client.publish.send_buffer import Outgoing
from weft.errors import Overloaded, WeftError


class Queued:
    """A message that waits for room; `put` is done when it is in the buffer, or cannot be."""

    def __init__(self, frame: bytes, pending: Pending | None, put: asyncio.Future[None]) -> None:
        self.frame = frame
        self.pending = pending
        self.put = put
        self._watched: weakref.ref[Coroutine[object, object, object]] | None = None

    def watch(self, waiting: Coroutine[object, object, object], room: "Room") -> None:
        """Leave the queue when what waits for this is gone without ever having run."""
        self._watched = weakref.ref(waiting, functools.partial(_unwatched, room, self))


class Room:
    """The room in a buffer: waited for, and made by whoever sends.

    Messages are put in the order in which they were queued, bounded in number.
    """

    def __init__(self, outgoing: Outgoing, queued_max: int) -> None:
        self._outgoing = outgoing
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[None]] = []
        self._queued_max = queued_max
        self._queue: dict[Queued, None] = {}

    def queue(self, frame: bytes, pending: Pending | None = None) -> Queued:
        """Have a message put once there is room, before all that is published later.

        Raises:
            Overloaded: too many wait already.
        """
        if len(self._queue) >= self._queued_max:
            raise Overloaded(
                f"{len(self._queue)} messages wait for room in the publish buffer, which is the"
                " limit"
            )
        queued = Queued(frame, pending, self._loop.create_future())
        self._queue[queued] = None
        self._outgoing.queued = len(self._queue)
        return queued

    def leave(self, queued: Queued) -> None:
        """Wait no more for a message; harmless if it was put."""
        self._queue.pop(queued, None)
        self._outgoing.queued = len(self._queue)
        if not queued.put.done():
            queued.put.cancel()
            # What came after it may be smaller.
            self._fill()

    async def wait(self) -> None:
        """Wait until there may be some."""
        waiter = self._loop.create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def made(self) -> None:
        """What was taken has left, or never will: whoever waits, here or on a thread, may look."""
        self._outgoing.sent()
        if self._queue:
            self._fill()
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)

    def _fill(self) -> None:
        """Put what waits, as far as there is room."""
        while self._queue:
            first = next(iter(self._queue))
            if not (first.put.done() or self._is_settled(first)):
                break
            del self._queue[first]
        self._outgoing.queued = len(self._queue)

    def _is_settled(self, queued: Queued) -> bool:
        """Put a message, or find that it never will be; False if it must wait on."""
        try:
            if queued.pending is not None:
                is_put = self._outgoing.put_pending(queued.pending)
            else:
                is_put = self._outgoing.put(queued.frame)
        except WeftError as error:
            queued.put.set_exception(error)
            return True
        if is_put:
            queued.put.set_result(None)
        return is_put


def _unwatched(room: Room, queued: Queued, _: object) -> None:
    room.leave(queued)
