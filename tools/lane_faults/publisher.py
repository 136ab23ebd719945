"""A publisher that numbers what it says, asks for lanes again and again, and knows what came."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from time import monotonic_ns

from tools.lane_faults.judge import Break, Counts, Speech
from tools.lane_faults.notes import Said

from weft.client.asyncio.connection import AsyncConnection, connect
from weft.client.status import Status, What
from weft.errors import WeftError

# What is said at a time, and how often.
BURST = 8
TURN_S = 0.02
# One in so many messages is for the subject that is never direct.
CALM_ONE_IN = 25
CALM = "calm"
# How long until it asks again, and until it makes sure that everything came.
ASK_S = (0.02, 0.2)
FLUSH_S = 0.2
WAIT_S = 30.0

_DIRECT = re.compile(r"(\S+) goes direct")
_AGAIN = re.compile(r"(\S+) goes through the gateway again: (.*)")
_STAYS = re.compile(r"(\S+) stays with the gateway: (.*)")
_NAME = re.compile(r"\b(receiver|visitor|closed|publisher)\.[\d.]*\d")
_FIGURE = re.compile(r"\d+(\.\d+)?(:\d+)?( s\b)?")


class Tally:
    """What became of routes, of all publishers."""

    def __init__(self) -> None:
        self.promotions = 0
        self.demotions: Counter[str] = Counter()
        # Offers that were not taken up.
        self.declined: Counter[str] = Counter()
        # What publishers were told that receivers may lack.
        self.gaps = 0
        self.reconnects = 0


class Publisher:
    """One connection, which may be lost and come back."""

    def __init__(self, number: int, subjects: list[str], tally: Tally) -> None:
        self.speech = Speech(number)
        self._subjects = subjects
        self._tally = tally
        self._number = 0
        self._confirmed: Counts = {}
        self._direct: set[str] = set()
        self._connection: AsyncConnection | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def name(self) -> str:
        """What it is called."""
        return f"publisher.{self.speech.number}"

    async def begin(self, address: str, key: str, chance: random.Random) -> None:
        """Connect and speak."""
        connection = self._connection = await connect(
            address, name=self.name, key=key, on_status=self._told, backoff_cap_s=0.2, wait=True
        )
        begin = asyncio.get_running_loop().create_task
        self._tasks = [begin(self._speak(connection, chance)), begin(self._confirm(connection))]
        self._tasks += [begin(self._ask(connection, each, chance)) for each in self._subjects]

    async def finish(self) -> None:
        """Say something for the last time to each subject, and leave once all have it.

        Raises:
            TimeoutError: it does not come to that.
        """
        connection, self._connection = self._connection, None
        if connection is None:
            return
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        problems = [each for each in results if isinstance(each, Exception)]
        async with asyncio.timeout(WAIT_S):
            for subject in (*self._subjects, CALM):
                await self._say(connection, subject, 0)
            while not await self._flushed(connection):
                await asyncio.sleep(TURN_S)
        await connection.close()
        if problems:
            raise problems[0]

    async def _speak(self, connection: AsyncConnection, chance: random.Random) -> None:
        while True:
            for _ in range(chance.randrange(BURST)):
                is_calm = chance.randrange(CALM_ONE_IN) == 0
                subject = CALM if is_calm else chance.choice(self._subjects)
                await self._say(connection, subject, chance.choice((0, 100, 2000)))
            await asyncio.sleep(TURN_S)

    async def _say(self, connection: AsyncConnection, subject: str, padding: int) -> None:
        self._number += 1
        times_ns = self.speech.times_ns[subject]
        times_ns.append(monotonic_ns())
        said = Said(self.speech.number, self._number, subject, len(times_ns))
        await connection.publish(subject, said.body(padding))

    async def _ask(self, connection: AsyncConnection, subject: str, chance: random.Random) -> None:
        while True:
            # Why not is told by a status, or is only that it failed just now.
            with suppress(WeftError):
                await connection.direct(subject)
            await asyncio.sleep(chance.uniform(*ASK_S))

    async def _confirm(self, connection: AsyncConnection) -> None:
        while True:
            await self._flushed(connection)
            await asyncio.sleep(FLUSH_S)

    async def _flushed(self, connection: AsyncConnection) -> bool:
        counts = self.speech.counts
        try:
            await connection.flush()
        except WeftError:
            return False
        self._confirmed = counts
        return True

    def _told(self, status: Status) -> None:
        act: Callable[[Status], None] | None = {
            What.LANE: self._route_changed,
            What.DISCONNECTED: self._cut_off,
            What.GAP: self._may_lack,
        }.get(status.what)
        if act is not None:
            act(status)

    def _route_changed(self, status: Status) -> None:
        tally = self._tally
        if (found := _DIRECT.match(status.detail)) is not None:
            tally.promotions += 1
            self._direct.add(found[1])
        elif (found := _AGAIN.match(status.detail)) is not None:
            tally.demotions[kind_of(found[2])] += 1
            self._direct.discard(found[1])
        elif (found := _STAYS.match(status.detail)) is not None:
            tally.declined[kind_of(found[2])] += 1

    def _cut_off(self, _: Status) -> None:
        self._tally.reconnects += 1
        self.speech.breaks.append(Break(self._confirmed, self.speech.counts))
        self._tally.demotions["the gateway is gone"] += len(self._direct)
        self._direct.clear()

    def _may_lack(self, _: Status) -> None:
        self._tally.gaps += 1


def kind_of(reason: str) -> str:
    """A reason without the names and figures in it."""
    return _FIGURE.sub("…", _NAME.sub(r"\1", reason))
