"""One gateway of the mesh as an operator runs it, which is stopped, killed and started again."""

import asyncio
import json
import os
import re
import select
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

WAIT_S = 60.0
NAME = "chaos-"
SERVICE = "default"
_READY = re.compile(r" is ready on \S+:(\d+);")
_SERVE = ("-m", "weft.cli", "serve", "--config")
_STATUS = b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


class Failed(RuntimeError):
    """A gateway that could not be started, or does not answer."""


class Site(NamedTuple):
    """Where a gateway runs: what its command begins with, and where its clients find it.

    A port of 0 is one that the system chooses when it starts for the first time.
    """

    command: tuple[str, ...] = ()
    listen: str = "127.0.0.1"
    host: str = "127.0.0.1"
    port: int = 0


class Gateway:
    """`weft serve`, in its present life or the next one; settings by their dotted keys."""

    def __init__(self, number: int, folder: Path, site: Site) -> None:
        self.number = number
        self.name = f"{NAME}{number}"
        self.folder = folder / self.name
        self.data = self.folder / "data"
        self.data.mkdir(parents=True)
        self.settings: dict[str, object] = {}
        self.key = ""
        self.lives = 0
        self._site = site
        self.port = site.port
        self._process: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where its clients find it."""
        return self._site.host, self.port

    @property
    def log(self) -> str:
        """All that it has said, in all of its lives."""
        return (self.folder / "log").read_text()

    async def start(self) -> None:
        """Start it with the data that there is, and wait until it is ready.

        Raises:
            Failed: it never is.
        """
        file = self.folder / "weft.toml"
        given = {
            "name": self.name,
            "listen": f"{self._site.listen}:{self.port}",
            "services": [SERVICE],
            "data": str(self.data),
            "drain_s": 5.0,
        } | self.settings
        # What JSON writes of texts, numbers and lists is TOML as well.
        file.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in given.items()))
        with (self.folder / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(*self._site.command, sys.executable, *_SERVE, str(file)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.lives += 1
        self.port = await self._port_said()

    async def kill(self) -> None:
        """Kill all of its processes at once, and wait until nothing of them is left."""
        front = self._running().pid
        # Stopped, it starts no other worker.
        os.kill(front, signal.SIGSTOP)
        with ExitStack() as stack:
            descriptors = [os.pidfd_open(pid) for pid in (*children(front), front)]
            for descriptor in descriptors:
                stack.callback(os.close, descriptor)
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            await asyncio.to_thread(_wait_for_ends, descriptors)
        await self._running().wait()
        self._process = None

    async def end(self) -> int:
        """Drain it; its exit status. Killed if it does not end."""
        process, self._process = self._running(), None
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(WAIT_S):
                return await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    @property
    def is_running(self) -> bool:
        """Say if it was started and not killed since."""
        return self._process is not None

    async def status(self) -> dict[str, Any]:
        """What it says about its service.

        Raises:
            Failed: it does not answer, or not for its service.
        """
        key = f"Authorization: Bearer {self.key}\r\n".encode() if self.key else b""
        try:
            async with asyncio.timeout(WAIT_S):
                reader, writer = await asyncio.open_connection(*self.address)
                writer.write(_STATUS + key + b"\r\n")
                answer = await reader.read()
                writer.close()
        except OSError as error:
            raise Failed(f"{self.name} does not answer: {error}") from error
        try:
            found: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
        except ValueError as error:
            raise Failed(f"{self.name} answers {answer[:200]!r}") from error
        service: dict[str, Any] = found["services"][SERVICE]
        return service

    async def worker(self) -> int:
        """The process id of its worker."""
        return int((await self.status())["pid"])

    async def reached(self) -> int:
        """How many other gateways it can reach."""
        status = (await self.status())["status"]
        if status is None:
            raise Failed(f"the worker of {self.name} says nothing")
        return int(status["mesh"]["nodes"])

    async def _port_said(self) -> int:
        stdout = self._running().stdout
        if stdout is None:
            raise Failed("its output goes elsewhere")
        try:
            async with asyncio.timeout(WAIT_S):
                line = (await stdout.readline()).decode()
        except TimeoutError as error:
            raise Failed(f"{self.name} is not ready after {WAIT_S} s: {self.log}") from error
        found = _READY.search(line)
        if found is None:
            raise Failed(f"{self.name} says {line!r}: {self.log}")
        return int(found[1])

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise Failed(f"{self.name} is not running")
        return self._process


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in found.split()]


def _wait_for_ends(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        select.select([descriptor], [], [], WAIT_S)
