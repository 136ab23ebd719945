"""Gateways of one mesh, each in processes of its own, and what they say of it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

from tests.gateway.meshes import LIMIT_S
from tests.journeys.running import RunningGateway, running

import weft

# A loaded machine must not make anybody late who is not meant to be.
SETTINGS = """
name = "{name}"
services = ["default"]

[limits]
greeting_s = 60.0

[mesh]
{mesh}
"""


@contextmanager
def gateway(
    folder: Path, name: str, mesh: str = "", listen: str = "127.0.0.1:0"
) -> Iterator[RunningGateway]:
    """A gateway that runs; `mesh` is what its settings say of that."""
    settings = SETTINGS.format(name=name, mesh=mesh)
    with running(folder / name, settings, listen) as made:
        yield made


@contextmanager
def killed_at_the_end(folder: Path, name: str) -> Iterator[RunningGateway]:
    """A gateway that does not end in order."""
    made = RunningGateway(folder / name, SETTINGS.format(name=name, mesh=""), "127.0.0.1:0")
    try:
        yield made
    finally:
        made.kill()


@contextmanager
def mesh_of(folder: Path, *names: str) -> Iterator[list[RunningGateway]]:
    """Gateways that all know the first of them, linked with each other."""
    with ExitStack() as stack:
        made = [stack.enter_context(gateway(folder, names[0]))]
        mesh = f'join = ["{made[0].address}"]'
        made += [stack.enter_context(gateway(folder, name, mesh)) for name in names[1:]]
        yield made


def mesh_status(made: RunningGateway) -> dict[str, Any]:
    """What a gateway says of the mesh; nothing while its worker is starting."""
    status = made.status()["services"]["default"]["status"]
    return {} if status is None else dict(status["mesh"])


async def until(is_so: Callable[[dict[str, Any]], bool], *gateways: RunningGateway) -> None:
    """Wait until something holds for what each of these gateways says of the mesh."""
    for made in gateways:
        while not ((status := await asyncio.to_thread(mesh_status, made)) and is_so(status)):
            await asyncio.sleep(0.02)


async def linked(*gateways: RunningGateway) -> None:
    """Wait until these gateways, all that there are, are linked with each other."""
    count = len(gateways) - 1
    await until(lambda mesh: mesh["nodes"] == mesh["links"] == count, *gateways)


@asynccontextmanager
async def client(made: RunningGateway, name: str = "") -> AsyncIterator[weft.AsyncConnection]:
    """Somebody who is connected to a gateway."""
    async with weft.connect(made.address, timeout_s=LIMIT_S, name=name) as connection:
        yield connection


class Proxy:
    """Stands before a gateway, and can cut every connection that goes through it."""

    def __init__(self) -> None:
        self.behind = ("", 0)
        self.address = ""
        self.accepted = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()

    def lead_to(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.behind = (host, int(port))

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.behind[0]:
            writer.close()
            return
        self.accepted += 1
        there, behind = await asyncio.open_connection(*self.behind)
        self._writers += [writer, behind]
        await asyncio.gather(_pass(reader, behind), _pass(there, writer))


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()
