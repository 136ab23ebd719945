"""Who takes part in a run: publishers here, receivers in processes, visitors that come and go."""

import asyncio
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tools.chaos.gateways import Gateway
from tools.lane_faults.notes import Noting, Session, read
from tools.lane_faults.places import Place
from tools.lane_faults.publisher import CALM, Publisher, Tally

from weft.client.asyncio.connection import connect
from weft.errors import WeftError

# By which way each receiver is reached; the last says where it is, and is not there.
WAYS = ("unix", "tcp", "unix", "tcp", "closed")
SUBJECTS = [f"hot.{each}" for each in range(4)]
PUBLISHERS = 4
WAIT_S = 90.0

_RECEIVER = ("-m", "tools.lane_faults.receiver")


class Process:
    """A receiver in a process, in its present life or the next one."""

    def __init__(self, number: int, folder: Path, command: tuple[str, ...]) -> None:
        self.number = number
        self.way = WAYS[number]
        # One thing at a time is done to it: whoever stands still is not killed meanwhile.
        self.lock = asyncio.Lock()
        self._command = command
        self._folder = folder
        self._lives = 0
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, gateway: Gateway) -> None:
        """Begin a life."""
        self._lives += 1
        name = f"{'closed' if self.way == 'closed' else 'receiver'}.{self.number}"
        subjects = SUBJECTS if self.way == "closed" else [*SUBJECTS, CALM]
        notes = self._folder / f"{name}-{self._lives}"
        with (self._folder / "receivers.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(*self._command, sys.executable, *_RECEIVER),
                *(address_of(gateway), name, str(notes), self.way, *subjects),
                *("--key", gateway.key, "--seed", str(self._lives)),
                stdin=subprocess.PIPE,
                stderr=log,
            )

    async def kill(self) -> None:
        """End its life at once."""
        process = self._running()
        process.kill()
        await process.wait()

    async def stop(self, seconds: float) -> None:
        """Let it stand still for a while."""
        process = self._running()
        process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            process.send_signal(signal.SIGCONT)

    def renew(self) -> None:
        """Have it subscribe again while its lanes stall."""
        process = self._running()
        if process.stdin is not None and process.returncode is None:
            process.stdin.write(b"again\n")

    async def finish(self) -> int:
        """Let it hear all that came for it, and end; its exit status."""
        process = self._running()
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(WAIT_S):
                return await process.wait()
        finally:
            if process.returncode is None:
                await self.kill()

    def abandon(self) -> None:
        """Have nothing of it left, whatever it does."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError(f"receiver {self.number} was not started")
        return self._process


class Crowd:
    """Everybody."""

    def __init__(self, gateway: Gateway, folder: Path, place: Place, seed: int) -> None:
        self.gateway = gateway
        self.tally = Tally()
        self.everybody: list[Publisher] = []
        self.publishers: list[Publisher] = []
        self.processes = [Process(each, folder, place.command(each)) for each in range(len(WAYS))]
        self._folder = folder
        self._chance = random.Random(seed)  # noqa: S311  # to be repeated
        self._visits: list[tuple[str, list[str]]] = []

    async def begin(self) -> None:
        """Have receivers and publishers come."""
        for process in self.processes:
            await process.start(self.gateway)
        for _ in range(PUBLISHERS):
            await self._add()

    async def renew(self, publisher: Publisher) -> None:
        """Let one publisher leave and another come."""
        self.publishers.remove(publisher)
        await publisher.finish()
        await self._add()

    async def visit(self, seconds: float, chance: random.Random) -> None:
        """Hear some of the subjects for a while."""
        lines: list[str] = []
        name = f"visitor.{len(self._visits)}"
        self._visits.append((name, lines))
        noting = Noting(lines.append)
        wanted = chance.sample(SUBJECTS, chance.randrange(1, len(SUBJECTS)))
        # Whoever meets no gateway has not been here.
        with suppress(WeftError):
            async with connect(address_of(self.gateway), name=name, key=self.gateway.key) as here:
                subscription = here.subscribe(wanted, noting.hear, on_gap=noting.miss)
                await subscription.ready()
                noting.ready(wanted)
                await asyncio.sleep(seconds)
                await subscription.close()

    async def finish(self) -> list[str]:
        """Let everybody say and hear the last of it; what went wrong at that."""
        problems: list[str] = []
        for publisher in list(self.publishers):
            try:
                await publisher.finish()
            except (WeftError, TimeoutError) as error:
                problems.append(f"{publisher.name} did not finish: {error!r}")
        for process in self.processes:
            status = await process.finish()
            if status != 0:
                problems.append(f"receiver {process.number} ended with status {status}")
        log = (self._folder / "receivers.log").read_text()
        if "Traceback" in log:
            problems.append(f"receivers failed:\n{log[-4000:]}")
        return problems

    def abandon(self) -> None:
        """Have no process left."""
        for process in self.processes:
            process.abandon()

    def sessions(self) -> list[Session]:
        """What everybody heard."""
        files = [*self._folder.glob("receiver.*-*"), *self._folder.glob("closed.*-*")]
        found = [(file.name, file.read_text()) for file in sorted(files)]
        found += [(name, "".join(lines)) for name, lines in self._visits]
        return [session for name, text in found for session in read(name, text)]

    async def _add(self) -> None:
        publisher = Publisher(len(self.everybody), SUBJECTS, self.tally)
        self.everybody.append(publisher)
        self.publishers.append(publisher)
        chance = random.Random(self._chance.random())  # noqa: S311  # to be repeated
        await publisher.begin(address_of(self.gateway), self.gateway.key, chance)


def address_of(gateway: Gateway) -> str:
    """Where clients find a gateway."""
    host, port = gateway.address
    return f"tcp://{host}:{port}"
