"""Who talks by lanes in journeys: a reader and a writer that count, where routes are soon hot."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.journeys.running import RunningGateway

import weft

LIMIT_S = 20.0
SETTINGS = """
name = "lanes"

[limits]
greeting_s = 60.0

[lanes]
messages_s = 200.0
hold_s = 0.2
retry_s = 0.2
"""
DIRECT = 1 << 63


class Reader:
    """A subscriber, and the numbers that it heard: whether each came by a lane, and what it was."""

    def __init__(self, connection: weft.AsyncConnection, subject: str) -> None:
        self.connection = connection
        self.gaps: list[weft.Gap] = []
        self.heard: list[tuple[bool, int]] = []
        self.subscription = connection.subscribe(subject, self._take, on_gap=self.gaps.append)

    def _take(self, message: weft.AsyncReceived) -> None:
        self.heard.append((message.sequence >= DIRECT, int(message.payload)))

    @property
    def numbers(self) -> list[int]:
        return [number for _, number in self.heard]

    @property
    def by_lane(self) -> int:
        return sum(is_direct for is_direct, _ in self.heard)


@asynccontextmanager
async def reading(gateway: RunningGateway, subject: str, **options: str) -> AsyncIterator[Reader]:
    async with weft.connect(gateway.address, **options) as connection:  # type: ignore[arg-type]
        reader = Reader(connection, subject)
        await reader.subscription.ready()
        yield reader


class Writer:
    """A publisher that counts what it says."""

    def __init__(self, connection: weft.AsyncConnection, subject: str) -> None:
        self.connection = connection
        self.subject = subject
        self.said = 0

    async def say(self, count: int) -> None:
        for _ in range(count):
            await self.connection.publish(self.subject, b"%d" % self.said)
            self.said += 1

    async def go_on(self, until: Callable[[], bool]) -> None:
        """Publish some hundred a second until something is so."""
        async with asyncio.timeout(LIMIT_S):
            while not until():
                await self.say(5)
                await asyncio.sleep(0.01)


async def eventually(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not is_so():
            await asyncio.sleep(0.01)


async def state_of(connection: weft.AsyncConnection, subject: str) -> list[str]:
    """How routes to a subject go, as `weft routes` shows it."""
    answer = await connection.send_request("_WEFT.ask.routes", weft.Message(subject=subject))
    return [f"{route['state']}: {route['reason']}" for route in answer.get_list("routes")]
