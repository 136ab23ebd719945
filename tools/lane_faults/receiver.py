"""A receiver in a process of its own, which may be stopped and killed; it notes what it hears.

It stays until its input ends, and then until it has heard all that came for it; one that visits
comes and goes meanwhile.
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

from weft.client.aio import AsyncConnection, connect
from weft.client.received import AsyncReceived
from weft.errors import WeftError

# Where it says to itself that it has heard everything.
END = "end."
# How often what was noted is written: less is lost of what one noted that is killed.
WRITE_S = 0.02
WAIT_S = 60.0
VISIT_S = (0.3, 1.5)
ABSENCE_S = (3.0, 9.0)


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

    def __init__(self, connection: AsyncConnection, name: str, noting: Noting) -> None:
        self._connection = connection
        self._end = END + name
        self._noting = noting
        self._is_over = asyncio.Event()

    async def stay(self, subjects: list[str]) -> None:
        """Hear them until everything was heard."""
        noting = self._noting
        subscription = self._connection.subscribe(
            [*subjects, self._end], self._hear, on_gap=noting.miss
        )
        await subscription.ready(WAIT_S)
        noting.ready(subjects)
        await self._until_told()
        # Whatever the gateway has for it by now comes before this.
        await self._connection.publish(self._end, b"")
        async with asyncio.timeout(WAIT_S):
            await self._is_over.wait()
        noting.complete()

    async def visit(self, subjects: list[str], chance: random.Random) -> None:
        """Hear one of them now and then."""
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

    def _hear(self, message: AsyncReceived) -> None:
        if message.subject == self._end:
            self._is_over.set()
        else:
            self._noting.hear(message)

    async def _until_told(self) -> None:
        """Wait for the end of the input."""
        await asyncio.to_thread(sys.stdin.read)


async def received(asked: argparse.Namespace) -> None:
    """Hear until the input ends."""
    with Path(asked.notes).open("a") as notes:
        async with connect(
            asked.address, name=asked.name, key=asked.key, backoff_cap_s=0.2, wait=True
        ) as connection:
            writing = asyncio.ensure_future(_write_out(notes))
            receiver = Receiver(connection, asked.name, Noting(notes.write))
            if asked.way == "closed":
                chance = random.Random(asked.seed)  # noqa: S311  # to be repeated
                await receiver.visit(asked.subjects, chance)
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
