"""Whoever waits on the loop for room among what is yet to be sent."""

import asyncio

from weft.client.outgoing import Outgoing


class Room:
    """The room in a buffer: waited for, and made by whoever sends."""

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[None]] = []

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
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)
