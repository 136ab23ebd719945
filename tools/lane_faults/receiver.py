"""A receiver in a process of its own, which may be stopped and killed; it notes what it hears.

It stays until its input ends, and then until it has heard all that came for it; one that visits
comes and goes meanwhile. At each line of input it subscribes again while its lanes stall.
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOBase
from pathlib import Path
from typing import Any

import uvloop
from tools.lane_faults.notes import Noting
from tools.lane_faults.stalling import stall_lanes

from weft.client.asyncio.connection import AsyncConnection, AsyncSubscription, connect
from weft.client.received import AsyncReceived
from weft.errors import WeftError

# Where it says to itself that it has heard everything.
END = "end."
# How often what was noted is written: less is lost of what one noted that is killed.
WRITE_S = 0.02
WAIT_S = 60.0
VISIT_S = (0.3, 1.5)
ABSENCE_S = (3.0, 9.0)
# How long its lanes are not read while it subscribes again, and how long it is away meanwhile.
STALL_S = (0.1, 0.9)
AWAY_S = (0.0, 0.3)


class NoNames(uvloop.Loop):
    """The loop of a machine on which sockets have no names: its lanes go by TCP."""

    async def create_unix_server(self, *_: Any, **__: Any) -> Any:
        """There is none."""
        raise NotImplementedError


class Closed(NoNames):
    """The loop of one that says where it listens, and cannot be reached there."""

    async def create_server(self, *arguments: Any, **options: Any) -> Any:
        """Listen for a moment only."""
        server = await super().create_server(*arguments, **options)
        self.call_later(0.001, server.close)
        return server


WAYS = {"unix": uvloop.Loop, "tcp": NoNames, "closed": Closed}


class Receiver:
    """One connection that hears some subjects."""

    def __init__(
        self, connection: AsyncConnection, name: str, noting: Noting, chance: random.Random
    ) -> None:
        self._connection = connection
        self._chance = chance
        self._renewal = asyncio.Event()
        self._end = END + name
        self._noting = noting
        self._is_over = asyncio.Event()

    async def stay(self, subjects: list[str]) -> None:
        """Hear them until everything was heard."""
        noting = self._noting
        subscription = await self._subscribed(subjects)
        told = asyncio.ensure_future(self._until_told())
        renewing = asyncio.ensure_future(self._renew_again_and_again(subscription, subjects, told))
        await told
        self._renewal.set()
        await renewing
        # Whatever the gateway has for it by now comes before this.
        await self._connection.publish(self._end, b"")
        async with asyncio.timeout(WAIT_S):
            await self._is_over.wait()
        noting.complete()

    async def visit(self, subjects: list[str]) -> None:
        """Hear one of them now and then."""
        chance = self._chance
        told = asyncio.ensure_future(self._until_told())
        while not told.done():
            await asyncio.wait([told], timeout=chance.uniform(*ABSENCE_S))
            wanted = [chance.choice(subjects)]
            subscription = self._connection.subscribe(
                wanted, self._noting.hear, on_gap=self._noting.miss
            )
            # Whoever has no gateway just now comes another time.
            with suppress(WeftError):
                await subscription.ready()
                self._noting.ready(wanted)
                await asyncio.wait([told], timeout=chance.uniform(*VISIT_S))
            await subscription.close()
            self._noting.leave()

    async def _subscribed(self, subjects: list[str]) -> AsyncSubscription:
        subscription = self._connection.subscribe(
            [*subjects, self._end], self._hear, on_gap=self._noting.miss
        )
        await subscription.ready(WAIT_S)
        self._noting.ready(subjects)
        return subscription

    async def _renew_again_and_again(
        self, subscription: AsyncSubscription, subjects: list[str], told: asyncio.Future[None]
    ) -> None:
        """Unsubscribe and subscribe again with stalled lanes, each time that it is asked for."""
        chance = self._chance
        while True:
            await self._renewal.wait()
            if told.done():
                return
            self._renewal.clear()
            stall_s = chance.uniform(*STALL_S)
            stall_lanes(self._connection, stall_s)
            await asyncio.sleep(stall_s * chance.random())
            await subscription.close()
            self._noting.leave()
            await asyncio.sleep(chance.choice((0.0, chance.uniform(*AWAY_S))))
            subscription = await self._subscribed(subjects)
            # Until then its lanes may still be stalled.
            await asyncio.sleep(stall_s)

    def _hear(self, message: AsyncReceived) -> None:
        if message.subject == self._end:
            self._is_over.set()
        else:
            self._noting.hear(message)

    async def _until_told(self) -> None:
        """Wait for the end of the input; each line of it asks for another subscription."""
        while await asyncio.to_thread(sys.stdin.readline):
            self._renewal.set()


async def received(asked: argparse.Namespace) -> None:
    """Hear until the input ends."""
    with Path(asked.notes).open("a") as notes:
        async with connect(
            asked.address, name=asked.name, key=asked.key, backoff_cap_s=0.2, wait=True
        ) as connection:
            writing = asyncio.ensure_future(_write_out(notes))
            chance = random.Random(asked.seed)  # noqa: S311  # to be repeated
            receiver = Receiver(connection, asked.name, Noting(notes.write), chance)
            if asked.way == "closed":
                await receiver.visit(asked.subjects)
            else:
                await receiver.stay(asked.subjects)
            writing.cancel()


async def _write_out(notes: TextIOBase) -> None:
    while True:
        await asyncio.sleep(WRITE_S)
        notes.flush()


def main(arguments: Sequence[str]) -> None:
    """Be a receiver."""
    parser = argparse.ArgumentParser(prog="receiver")
    parser.add_argument("address")
    parser.add_argument("name")
    parser.add_argument("notes")
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("subjects", nargs="+")
    parser.add_argument("--key", default="")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    with asyncio.Runner(loop_factory=WAYS[asked.way]) as runner:
        runner.run(received(asked))


if __name__ == "__main__":
    main(sys.argv[1:])
