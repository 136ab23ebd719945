"""Waiting on the event loop for space in the send buffer."""

import asyncio
import functools
import weakref
from collections.abc import Coroutine

from weft.client.publish.pending_ack import Pending
from weft.client.publish.send_buffer import SendBuffer
from weft.errors import Overloaded, WeftError


class Queued:
    """A message that waits for space; `put` completes when it is buffered, or fails."""

    def __init__(self, frame: bytes, pending: Pending | None, put: asyncio.Future[None]) -> None:
        self.frame = frame
        self.pending = pending
        self.put = put
        self._watched: weakref.ref[Coroutine[object, object, object]] | None = None

    def watch(self, waiting: Coroutine[object, object, object], room: "SendSpace") -> None:
        """Leave the queue if the coroutine that waits for this is discarded without having run."""
        self._watched = weakref.ref(waiting, functools.partial(_unwatched, room, self))


class SendSpace:
    """Tasks and messages that wait for space in the send buffer.

    Messages are buffered in the order in which they were queued, bounded in number.
    """

    def __init__(self, outgoing: SendBuffer, queued_max: int) -> None:
        self._outgoing = outgoing
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[None]] = []
        self._queued_max = queued_max
        self._queue: dict[Queued, None] = {}

    def queue(self, frame: bytes, pending: Pending | None = None) -> Queued:
        """Queue a message that is buffered once there is space, ahead of later ones.

        Raises:
            Overloaded: Too many messages are queued.
        """
        if len(self._queue) >= self._queued_max:
            raise Overloaded(
                f"{len(self._queue)} messages wait for space in the publish buffer, which is the"
                " limit"
            )
        queued = Queued(frame, pending, self._loop.create_future())
        self._queue[queued] = None
        self._outgoing.queued = len(self._queue)
        return queued

    def leave(self, queued: Queued) -> None:
        """Remove a message from the queue; ignored if it was buffered."""
        self._queue.pop(queued, None)
        self._outgoing.queued = len(self._queue)
        if not queued.put.done():
            queued.put.cancel()
            # The message after it may be smaller.
            self._fill()

    async def wait(self) -> None:
        """Wait until there may be space."""
        waiter = self._loop.create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def made(self) -> None:
        """Wake the waiting tasks and threads: bytes were sent, or the connection is closed."""
        self._outgoing.sent()
        if self._queue:
            self._fill()
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)

    def _fill(self) -> None:
        """Buffer queued messages as long as there is space."""
        while self._queue:
            first = next(iter(self._queue))
            if not (first.put.done() or self._is_settled(first)):
                break
            del self._queue[first]
        self._outgoing.queued = len(self._queue)

    def _is_settled(self, queued: Queued) -> bool:
        """Buffer a message, or fail it; return False if it must continue to wait."""
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


def _unwatched(room: SendSpace, queued: Queued, _: object) -> None:
    room.leave(queued)
