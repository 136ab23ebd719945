"""Kills a gateway again and again while messages are published, and counts what it lost."""

import asyncio
import random
from pathlib import Path

from tools.crashes.publisher import Publisher
from tools.crashes.tally import Tally, tally
from tools.crashes.victim import Victim

# Of so many kills one is of the whole gateway, not only of its worker.
WHOLE_EVERY = 5
# How often it need not have come back from the last one before it is killed again.
HASTE = 0.25
LONGEST_S = 0.6


async def kill_often(folder: Path, kills: int, seed: int) -> Tally:
    """Kill a gateway whose data is in a folder; what its journal holds in the end.

    The seed gives the moments and what is killed, not what the gateway is doing then.
    """
    chance = random.Random(seed)  # noqa: S311  # to be repeated, not to be secret
    publisher = Publisher(random.Random(seed))  # noqa: S311  # likewise
    with Victim(folder, folder / "data") as victim:
        async with publisher.publishing(victim.address):
            for number in range(kills):
                publisher.vary(chance)
                if chance.random() >= HASTE:
                    await publisher.advance()
                await asyncio.sleep(chance.uniform(0.0, LONGEST_S))
                if number % WHOLE_EVERY == 1:
                    await asyncio.to_thread(victim.kill)
                    await asyncio.to_thread(victim.start)
                else:
                    await asyncio.to_thread(victim.kill_worker)
            await publisher.advance()
    return tally(victim.place, publisher)
