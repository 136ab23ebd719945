"""Ticker without a journal, at a rate that is worth a lane: its route becomes direct."""

import asyncio
from collections.abc import Callable

import weft

TICKS = "ticks.eur"
# Well above the threshold of a hot route, even on a busy machine.
_AT_ONCE = 50
_EVERY_S = 0.02


async def tick(address: str) -> None:
    """Publish prices until cancelled."""
    async with weft.connect(address, service="weather", name="ticker") as connection:
        number = 0
        while True:
            for _ in range(_AT_ONCE):
                number += 1
                await connection.publish(TICKS, b"%d" % number)
            await asyncio.sleep(_EVERY_S)


async def listen(address: str, hear: Callable[[weft.Received], None]) -> None:
    """Receive the prices, on a connection of another client."""
    async with weft.connect(address, service="weather", name="desk") as connection:
        async for message in connection.subscribe(TICKS):
            hear(message)
