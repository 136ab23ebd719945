"""A publisher and a subscriber of one service that number what they say, and so miss nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from weft.client.asyncio.connection import AsyncConnection, AsyncSubscription, Connecting, connect
from weft.errors import ConnectionLost

SUBJECT = "stream.numbers"
_BATCH = 50


class Stream:
    """Numbers flow from one connection to another until it is told to end."""

    def __init__(self, address: str, service: str) -> None:
        self._address = address
        self._service = service
        self._is_ending = False
        self._progress = asyncio.Condition()
        self.sent = 0
        self.heard: list[int] = []
        # How often the gateway did not confirm what was sent, because the connection was lost.
        self.breaks = 0
        self.connects = 0

    async def run(self) -> None:
        """Speak and listen until end() is called, then until the last number is heard."""
        async with AsyncExitStack() as stack:
            speaker = await stack.enter_async_context(self._connection("speaker"))
            listener = await stack.enter_async_context(self._connection("listener"))
            subscription = listener.subscribe(SUBJECT)
            await subscription.ready()
            async with asyncio.TaskGroup() as tasks:
                listening = tasks.create_task(self._listen(subscription))
                await self._speak(speaker)
                await self.until(self.sent - 1)
                listening.cancel()
            self.connects = max(speaker.statistics.connects, listener.statistics.connects)

    def end(self) -> None:
        """Send no more."""
        self._is_ending = True

    async def until(self, number: int) -> None:
        """Wait until a number, or a later one, was heard."""
        async with self._progress:
            await self._progress.wait_for(lambda: self.heard and self.heard[-1] >= number)

    async def advance(self, count: int = 1000) -> None:
        """Wait until so many more numbers were sent and heard."""
        await self.until(self.sent + count)

    def is_exact(self) -> bool:
        """Say if everything that was sent was heard, once and in order."""
        return self.heard == list(range(self.sent))

    def _connection(self, name: str) -> Connecting:
        return connect(self._address, service=self._service, name=f"{self._service}.{name}")

    async def _speak(self, speaker: AsyncConnection) -> None:
        while not self._is_ending:
            for _ in range(_BATCH):
                await speaker.publish(SUBJECT, b"%d" % self.sent)
                self.sent += 1
            try:
                await speaker.flush()
            except ConnectionLost:
                self.breaks += 1

    async def _listen(self, subscription: AsyncSubscription) -> None:
        async for received in subscription:
            self.heard.append(int(received.payload))
            if self.heard[-1] % _BATCH == _BATCH - 1:
                async with self._progress:
                    self._progress.notify_all()


@asynccontextmanager
async def streaming(address: str, *services: str) -> AsyncIterator[list[Stream]]:
    """A stream in each service while a block runs; when it is left, all have heard the last."""
    streams = [Stream(address, service) for service in services]
    async with asyncio.TaskGroup() as tasks:
        for stream in streams:
            tasks.create_task(stream.run())
        for stream in streams:
            await stream.advance(0)
        yield streams
        for stream in streams:
            stream.end()
