"""Publishes numbers, many at a time, for as long as it is asked to."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import weft
from weft.errors import JournalFailed, WeftError

SUBJECT = "crash.numbers"
IN_FLIGHT = 50
# What the numbers come with: little, or so much that a crash may find a write to tear.
SMALL = (b"", b"", b"", b"-" * 200, b"-" * 200, b"-" * 6000)
LARGE = (b"", b"-" * 6000, b"-" * 50_000, b"-" * 200_000)
# How often it is so much.
LARGE_SHARE = 0.25
WAIT_S = 60
_POLL_S = 0.001


class Publisher:
    """What was published, what of it was acknowledged, and what a broken journal refused."""

    def __init__(self, chance: random.Random) -> None:
        self.published = 0
        self.acknowledged: set[int] = set()
        self.refused = 0
        self.fillings: tuple[bytes, ...] = SMALL
        self._chance = chance
        self._is_ending = False

    @asynccontextmanager
    async def publishing(self, address: str) -> AsyncIterator[None]:
        """Publish meanwhile, over one connection that comes back by itself."""
        # It would tell of every crash.
        logger = logging.getLogger(__name__)
        logger.disabled = True
        async with (
            weft.connect(
                address, logger=logger, backoff_first_s=0.02, backoff_cap_s=0.1
            ) as connection,
            asyncio.TaskGroup() as tasks,
        ):
            for _ in range(IN_FLIGHT):
                tasks.create_task(self._publish(connection))
            try:
                yield
            finally:
                self._is_ending = True

    def vary(self, chance: random.Random) -> None:
        """Choose what the numbers come with from now on."""
        self.fillings = LARGE if chance.random() < LARGE_SHARE else SMALL

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Publish until something is so.

        Raises:
            TimeoutError: it never is.
        """
        async with asyncio.timeout(WAIT_S):
            while not is_true():
                await asyncio.sleep(_POLL_S)

    async def advance(self, count: int = 1) -> None:
        """Publish until so many more are acknowledged."""
        wanted = len(self.acknowledged) + count
        await self.until(lambda: len(self.acknowledged) >= wanted)

    async def _publish(self, connection: weft.AsyncConnection) -> None:
        while not self._is_ending:
            number = self.published
            self.published += 1
            body = {"n": number, "filling": self._chance.choice(self.fillings)}
            try:
                await connection.publish(SUBJECT, body, acknowledge=True)
            except JournalFailed:
                self.refused += 1
            except WeftError:
                # It was lost on its way, or kept and nobody could be told: both are allowed.
                continue
            else:
                self.acknowledged.add(number)
