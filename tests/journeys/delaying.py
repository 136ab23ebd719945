"""Gateways of one mesh, each behind a proxy that makes it look far away and counts who comes."""

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.journeys.mesh_of import SETTINGS
from tests.journeys.running import WAIT_S, RunningGateway, kill

from weft.client.sync.loop_thread import Background
from weft.wire.frames import Kind

_CUT = 4096


class DelayingProxy:
    """Stands before a gateway; what passes it takes `delay_s` each way.

    It runs on a thread of its own, so that a test may wait as it likes.
    """

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        # Connections by what they began with: those of clients, and requests by their target.
        self.clients = 0
        self.targets: list[str] = []
        self.behind = ("", 0)
        self._background = Background("proxy")
        self.address: str = self._background.run(self._open())

    def lead_to(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.behind = (host, int(port))

    def close(self) -> None:
        self._background.run(self._close())
        self._background.stop()

    async def _open(self) -> str:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self._writers:
            await _end(self._writers.pop())

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            there, behind = await asyncio.open_connection(*self.behind)
            self._writers.add(behind)
            first = await reader.read(_CUT)
            self._count(first)
            behind.write(first)
            await asyncio.gather(self._pass(reader, behind), self._pass(there, writer))
        except OSError:
            # The gateway is gone: whoever came is told so by the end of its connection.
            await _end(writer)
        finally:
            self._tasks.discard(task)

    def _count(self, first: bytes) -> None:
        if first.startswith(b"GET "):
            self.targets.append(first.split()[1].decode())
        elif len(first) > 4 and first[4] == Kind.CONNECT:
            self.clients += 1

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                await asyncio.sleep(self.delay_s)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        self._writers.discard(writer)
        await _end(writer, is_aborted=False)


async def _end(writer: asyncio.StreamWriter, *, is_aborted: bool = True) -> None:
    if is_aborted:
        writer.transport.abort()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


class FarGateway:
    """A gateway and the proxy before it; others, clients too, know it by that."""

    def __init__(self, folder: Path, name: str, facts: Mapping[str, Any], join: str) -> None:
        self.name = name
        self.proxy = DelayingProxy(facts["delay_s"])
        mesh = f'address = "{self.proxy.address}"\nregion = "{facts["region"]}"\n'
        if join:
            mesh += f'join = ["{join}"]\n'
        settings = SETTINGS.format(name=name, mesh=mesh)
        self.running = RunningGateway(folder / name, settings, "127.0.0.1:0")
        self.proxy.lead_to(self.running.address)
        self.is_killed = False

    @property
    def address(self) -> str:
        return self.proxy.address

    def closest(self, query: str = "") -> list[str]:
        """The names of the candidates that it names."""
        url = f"http://{self.running.address}/closest?{query}"
        with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
            return [each["name"] for each in json.load(answer)["candidates"]]

    def kill(self) -> None:
        """End it, and its worker, without a word."""
        self.is_killed = True
        worker = self.running.worker("default")
        self.running.kill()
        kill(worker)

    def end(self) -> None:
        try:
            if not self.is_killed:
                self.running.terminate()
                assert self.running.wait() == 0
            assert "Traceback" not in self.running.log.read_text()
        finally:
            self.proxy.close()


@contextmanager
def far_mesh(folder: Path, **gateways: Mapping[str, Any]) -> Iterator[list[FarGateway]]:
    """Gateways by their names, that know each other; the first is the one that all join."""
    made: list[FarGateway] = []
    try:
        for name, facts in gateways.items():
            made.append(FarGateway(folder, name, facts, made[0].address if made else ""))
        names = sorted(gateways)
        ends = time.monotonic() + WAIT_S
        while any(sorted(each.closest()) != names for each in made):
            assert time.monotonic() < ends, "they have not found each other"
            time.sleep(0.02)
        yield made
    finally:
        for each in made:
            each.end()


def forget(*gateways: FarGateway) -> None:
    """Count anew."""
    for each in gateways:
        each.proxy.clients = 0
        each.proxy.targets.clear()


def taken(gateways: list[FarGateway]) -> dict[str, int]:
    """How many clients came to each."""
    return {each.name: each.proxy.clients for each in gateways}
