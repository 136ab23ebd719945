"""One run: a mesh is started, broken by a plan, left to itself, and asked what became of it."""

import asyncio
import os
import random
import secrets
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from time import monotonic_ns
from typing import NamedTuple, Protocol

from tools.chaos.crowd import Crowd, NotSettled
from tools.chaos.gateways import Failed, Gateway, Site
from tools.chaos.plan import KILL, PAUSE, Fault, planned
from tools.chaos.recovery import Happened

from weft.gateway.keys.private_file import write_private
from weft.simulation.history import History, Round

# Everyone should reach everyone so soon after the last fault.
PATIENCE_S = 10.0
# A mesh may take so long to be one in the first place, on a machine that is busy.
START_S = 30.0
_POLL_S = 0.05
_JOINS = 2


class Options(NamedTuple):
    """What was asked for."""

    seed: int
    seconds: float = 120.0
    gateways: int = 5
    max_links: int = 8
    rate: float = 1000.0
    is_journaling: bool = False


class Place(Protocol):
    """A network for gateways, whose links it can break."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The faults that there are."""

    def site(self, number: int, /) -> Site:
        """Where a gateway runs."""

    def equip(self, gateway: Gateway, /) -> None:
        """Give a gateway what it needs there."""

    def joined(self, number: int, /) -> str:
        """What others dial."""

    def ready(self, gateway: Gateway, /) -> None:
        """A gateway listens now."""

    async def begin(self, fault: Fault, /) -> None:
        """Break links."""

    async def end(self, fault: Fault, /) -> None:
        """Mend them."""


class Outcome(NamedTuple):
    """What a run left behind; `problems` are what the history cannot tell."""

    history: History
    crowd: Crowd
    happened: list[Happened]
    problems: list[str]
    # The names of gateways.
    killed: frozenset[str]


class Run:
    """A mesh of gateways in a folder, at a place."""

    def __init__(
        self, options: Options, place: Place, folder: Path, tell: Callable[[str], None]
    ) -> None:
        self._options = options
        self._place = place
        self._tell = tell
        self._happened: list[Happened] = []
        self._problems: list[str] = []
        # Ports are used again: another mesh on this machine must not be met by chance.
        self._secret = folder / "mesh.secret"
        write_private(self._secret, secrets.token_hex(32).encode())
        count = options.gateways
        self.gateways = [Gateway(each, folder, place.site(each)) for each in range(count)]
        # Whoever was killed takes as long to come back as the machine lets it.
        self._locks = [asyncio.Lock() for _ in range(count)]

    async def perform(self) -> Outcome:
        """Do everything; whatever goes wrong in the mesh is in the outcome.

        Raises:
            Failed: a gateway cannot be started.
            NotSettled: there is no mesh to break.
        """
        chance = random.Random(self._options.seed)  # noqa: S311  # to be repeated
        count = self._options.gateways
        faults = planned(chance, count, self._options.seconds, self._place.kinds)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._end)
            await self._start()
            crowd = await stack.enter_async_context(
                Crowd(self.gateways, self._options.rate, chance)
            )
            await crowd.begin()
            self._tell(f"{count} gateways are a mesh; {len(faults)} faults are to come")
            await self._break(faults)
            history = await self._settle(crowd)
        killed = frozenset(gateway.name for gateway in self.gateways if gateway.lives > 1)
        return Outcome(history, crowd, self._happened, self._problems, killed)

    async def _start(self) -> None:
        for gateway in self.gateways:
            self._equip(gateway)
        await asyncio.gather(*(gateway.start() for gateway in self.gateways))
        for gateway in self.gateways:
            self._place.ready(gateway)
        if not await self._is_one(START_S):
            raise NotSettled(f"not all gateways reach each other after {START_S:.0f} s")

    def _equip(self, gateway: Gateway) -> None:
        count = self._options.gateways
        joins = [(gateway.number + step) % count for step in range(1, _JOINS + 1)]
        gateway.settings |= {
            "mesh.join": [self._place.joined(each) for each in joins],
            "mesh.max_links": self._options.max_links,
            "mesh.secret_file": str(self._secret),
        }
        if self._options.is_journaling:
            # Each keeps what comes from the others, too: else there is nothing to compare.
            gateway.settings["journal.patterns"] = ["data.>", "probe.>"]
            gateway.settings["journal.scope"] = "mesh"
        self._place.equip(gateway)

    async def _break(self, faults: list[Fault]) -> None:
        began_ns = monotonic_ns()
        async with asyncio.TaskGroup() as tasks:
            for fault in faults:
                tasks.create_task(self._suffer(fault, began_ns))

    async def _suffer(self, fault: Fault, began_ns: int) -> None:
        """Let one fault happen at its time, or when its gateways are back from the last one."""
        await asyncio.sleep(fault.begins_s - (monotonic_ns() - began_ns) / 1e9)
        async with AsyncExitStack() as stack:
            for number in sorted(fault.gateways):
                await stack.enter_async_context(self._locks[number])
            self._tell(f"{(monotonic_ns() - began_ns) / 1e9:6.1f} s: {fault}")
            broken_ns = monotonic_ns()
            await self._cause(fault)
            self._happened.append(Happened(fault, broken_ns, monotonic_ns()))

    async def _cause(self, fault: Fault) -> None:
        gateway = self.gateways[fault.gateway]
        if fault.kind == KILL:
            await gateway.kill()
            await asyncio.sleep(fault.lasts_s)
            await gateway.start()
        elif fault.kind == PAUSE:
            await _pause(gateway, fault.lasts_s)
        else:
            await self._place.begin(fault)
            await asyncio.sleep(fault.lasts_s)
            await self._place.end(fault)

    async def _settle(self, crowd: Crowd) -> History:
        """Wait until all is calm; what was said and heard until then."""
        calm_ns = monotonic_ns()
        is_one = await self._is_one(PATIENCE_S)
        agreed_ns = monotonic_ns() if is_one else -1
        try:
            await crowd.until_flowing(calm_ns)
            await crowd.finish()
        except (NotSettled, TimeoutError) as error:
            self._problems.append(f"not settled: {error}")
        with suppress(NotSettled):
            # Those that are open all the same are for the checker to find.
            await crowd.until_answered()
        history = crowd.book.history()
        history.calm_ns, history.agreed_ns = calm_ns, agreed_ns
        history.patience_ns = int(PATIENCE_S * 1e9)
        firsts = crowd.firsts(calm_ns)
        heard = [each for each in firsts if each >= 0]
        history.rounds = [Round(calm_ns, len(firsts), heard)]
        return history

    async def _is_one(self, within_s: float) -> bool:
        """Wait until every gateway reaches all others; False if that takes too long."""
        wanted = [len(self.gateways) - 1] * len(self.gateways)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while True:
                    with suppress(Failed):
                        reached = await asyncio.gather(*(each.reached() for each in self.gateways))
                        if reached == wanted:
                            return True
                    await asyncio.sleep(_POLL_S)
        return False

    async def _end(self) -> None:
        """Drain all gateways, and see if anything went wrong in them."""
        running = [gateway for gateway in self.gateways if gateway.is_running]
        for gateway, status in zip(
            running, await asyncio.gather(*(each.end() for each in running)), strict=True
        ):
            if status != 0:
                self._problems.append(f"{gateway.name} ended with status {status}")
        for gateway in self.gateways:
            log = gateway.log if gateway.lives else ""
            if "Traceback" in log or "starting another" in log:
                self._problems.append(f"{gateway.name} failed:\n{log[-4000:]}")


async def _pause(gateway: Gateway, seconds: float) -> None:
    """Let a worker stand still for a while."""
    worker = os.pidfd_open(await gateway.worker())
    try:
        signal.pidfd_send_signal(worker, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(worker, signal.SIGCONT)
    finally:
        os.close(worker)
