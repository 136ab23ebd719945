"""Prices that nobody keeps, more than a gateway need relay: their route goes direct."""

import asyncio
from collections.abc import Callable

import weft

TICKS = "ticks.eur"
# Well over what makes a route hot, also where others keep the machine busy.
_AT_ONCE = 50
_EVERY_S = 0.02


async def tick(address: str) -> None:
    """Publish prices for as long as it is let."""
    async with weft.connect(address, service="weather", name="ticker") as connection:
        number = 0
        while True:
            for _ in range(_AT_ONCE):
                number += 1
                await connection.publish(TICKS, b"%d" % number)
            await asyncio.sleep(_EVERY_S)


async def listen(address: str, hear: Callable[[weft.Received], None]) -> None:
    """Hear them, as somebody else would."""
    async with weft.connect(address, service="weather", name="desk") as connection:
        async for message in connection.subscribe(TICKS):
            hear(message)
