"""One run: faults come at random until routes went direct so many times, and all is judged."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket
from time import monotonic
from typing import NamedTuple

from tools.chaos.gateways import Gateway
from tools.lane_faults import sockets
from tools.lane_faults.crowd import Crowd, Process
from tools.lane_faults.judge import Verdict, judged
from tools.lane_faults.places import Place
from tools.lane_faults.publisher import Tally

# A route that is busy at all is hot, and tried again at once.
SETTINGS: dict[str, object] = {
    "lanes.messages_s": 20.0,
    "lanes.hold_s": 0.1,
    "lanes.retry_s": 0.05,
    "lanes.idle_s": 1.0,
}
PAUSE_S = (0.05, 0.4)
STOP_S = (0.2, 5.0)
STALL_S = (0.5, 4.0)
VISIT_S = (0.1, 1.5)
GATEWAY_AWAY_S = (0.0, 1.0)
# How many in so many faults are of each kind.
WEIGHTS = {
    "cut": 24,
    "killed by ss": 24,
    "visitor": 24,
    "stop": 10,
    "stall": 3,
    "kill": 4,
    "gateway": 1,
    "reconnect": 5,
    "renew": 5,
    "resubscribe": 20,
}


class Options(NamedTuple):
    """What was asked for."""

    promotions: int
    seconds: float
    seed: int


class Outcome(NamedTuple):
    """What a run left behind."""

    verdict: Verdict
    tally: Tally
    faults: Counter[str]
    left_out: dict[str, str]
    problems: list[str]
    seconds: float


class Run:
    """One gateway in a folder, and everybody around it."""

    def __init__(self, options: Options, place: Place, folder: Path) -> None:
        self._options = options
        self._place = place
        self._chance = random.Random(options.seed)  # noqa: S311  # to be repeated
        self._gateway = Gateway(0, folder, place.site())
        self._gateway.settings |= SETTINGS
        place.equip(self._gateway)
        self._crowd = Crowd(self._gateway, folder, place, options.seed)
        self._faults: Counter[str] = Counter()
        self._left_out = left_out(place)
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._acts: dict[str, Callable[[], Awaitable[None]]] = {
            "cut": self._cut,
            "killed by ss": self._kill_sockets,
            "visitor": self._visitor,
            "stop": self._stop,
            "stall": self._stall,
            "kill": self._kill,
            "gateway": self._kill_gateway,
            "reconnect": self._reconnect,
            "renew": self._renew,
            "resubscribe": self._resubscribe,
        }

    async def perform(self, tell: Callable[[str], None]) -> Outcome:
        """Do everything.

        Raises:
            Failed: the gateway cannot be started.
        """
        began = monotonic()
        problems: list[str] = []
        # What fails where nobody waits for it must not go unseen.
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: problems.append(f"{context}")
        )
        try:
            await self._gateway.start()
            await self._crowd.begin()
            await self._break(began, tell)
            problems += [f"{each!r}" for each in await self._calm()]
            problems += await self._crowd.finish()
        finally:
            self._crowd.abandon()
            if self._gateway.is_running and await self._gateway.end() != 0:
                problems.append("the gateway did not end well")
        if "Traceback" in self._gateway.log:
            problems.append(f"the gateway failed:\n{self._gateway.log[-4000:]}")
        speeches = {each.speech.number: each.speech for each in self._crowd.everybody}
        verdict = judged(speeches, self._crowd.sessions())
        took_s = monotonic() - began
        return Outcome(verdict, self._crowd.tally, self._faults, self._left_out, problems, took_s)

    async def _break(self, began: float, tell: Callable[[str], None]) -> None:
        tally = self._crowd.tally
        kinds = [kind for kind in WEIGHTS if kind not in self._left_out]
        weights = [WEIGHTS[kind] for kind in kinds]
        told = 0
        while tally.promotions < self._options.promotions:
            if monotonic() - began > self._options.seconds:
                return
            if tally.promotions >= told + 100:
                told = tally.promotions
                tell(f"{monotonic() - began:6.1f} s: {told} promotions")
            await asyncio.sleep(self._chance.uniform(*PAUSE_S))
            [kind] = self._chance.choices(kinds, weights)
            self._faults[kind] += 1
            task = asyncio.ensure_future(self._acts[kind]())
            self._tasks.add(task)

    async def _calm(self) -> list[BaseException]:
        """Wait until all faults are over; what went wrong at them."""
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        return [each for each in results if isinstance(each, BaseException)]

    async def _cut(self) -> None:
        """End one lane from inside, or all of them."""
        found = self._lanes()
        chosen = found if self._chance.random() < 0.2 else found[:1]
        for each in found:
            if each in chosen:
                sockets.shut(each)
            else:
                each.close()

    async def _kill_sockets(self) -> None:
        """Have the system destroy one lane."""
        found = self._lanes(is_tcp=True)
        for each in found[1:]:
            each.close()
        for each in found[:1]:
            await asyncio.to_thread(sockets.killed, each)

    async def _visitor(self) -> None:
        await self._crowd.visit(self._chance.uniform(*VISIT_S), self._chance)

    async def _stop(self) -> None:
        async with self._one_process() as chosen:
            await chosen.stop(self._chance.uniform(*STOP_S))

    async def _stall(self) -> None:
        async with self._one_process() as chosen:
            await self._place.stall(chosen.number, self._chance.uniform(*STALL_S))

    async def _kill(self) -> None:
        async with self._one_process() as chosen:
            await chosen.kill()
            await chosen.start(self._gateway)

    async def _resubscribe(self) -> None:
        """Have a receiver subscribe again while its lanes stall."""
        async with self._one_process() as chosen:
            chosen.renew()

    @asynccontextmanager
    async def _one_process(self) -> AsyncIterator[Process]:
        """A receiver to which nothing is done at the moment, if there is one, and nothing else."""
        processes = self._crowd.processes
        free = [each for each in processes if not each.lock.locked()] or processes
        chosen = self._chance.choice(free)
        async with chosen.lock:
            yield chosen

    async def _kill_gateway(self) -> None:
        async with self._lock:
            await self._gateway.kill()
            await asyncio.sleep(self._chance.uniform(*GATEWAY_AWAY_S))
            await self._gateway.start()

    async def _reconnect(self) -> None:
        """End the connection of a publisher to the gateway; it comes back by itself."""
        port = self._gateway.port
        found = list(sockets.own_sockets())
        self._chance.shuffle(found)
        chosen = next((each for each in found if sockets.is_to(each, port)), None)
        for each in found:
            if each is chosen:
                sockets.shut(each)
            else:
                each.close()

    async def _renew(self) -> None:
        if self._crowd.publishers:
            await self._crowd.renew(self._chance.choice(self._crowd.publishers))

    def _lanes(self, *, is_tcp: bool = False) -> list[socket]:
        """The ends of lanes in this process, in any order."""
        found = sockets.lanes(self._gateway.port, is_tcp=is_tcp)
        self._chance.shuffle(found)
        return found


def left_out(place: Place) -> dict[str, str]:
    """Kinds of faults that cannot be here, and why."""
    why = {}
    if not place.can_stall:
        why["stall"] = f"{place.name} has no network between clients that could be cut"
    if problem := sockets.why_not_killed():
        why["killed by ss"] = problem
    return why
