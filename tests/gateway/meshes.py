"""Gateways of one mesh on the running loop, and how to wait for what they come to."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import weft
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import Settings
from weft.gateway.gateway import Gateway

SERVICE = "weather"
LIMIT_S = 15.0


@asynccontextmanager
async def gateway(
    name: str, mesh: MeshSettings | None = None, **others: Any
) -> AsyncIterator[Gateway]:
    """A gateway with one service."""
    settings = Settings(
        name=name, services=(SERVICE,), mesh=mesh or MeshSettings(), drain_s=5.0, **others
    )
    async with Gateway("127.0.0.1:0", settings=settings, workers="inline") as made:
        yield made


async def status(made: Gateway) -> dict[str, Any]:
    """What a gateway says of its service."""
    found: dict[str, Any] = (await made.status())["services"][SERVICE]["status"]
    return found


async def until(is_so: Callable[[dict[str, Any]], bool], *gateways: Gateway) -> None:
    """Wait until something holds for what each of these gateways says of the mesh."""
    for made in gateways:
        while not is_so((await status(made))["mesh"] or {}):
            await asyncio.sleep(0.01)


async def linked(*gateways: Gateway) -> None:
    """Wait until these gateways, all that there are, are linked with each other."""
    count = len(gateways) - 1
    await until(lambda mesh: mesh["links"] == mesh["nodes"] == count, *gateways)


async def wanted(connection: weft.AsyncConnection, subject: str, *names: str) -> None:
    """Wait until a subject is sent to these other gateways, and no more."""
    question = weft.Message(subject=subject)
    while True:
        answer = await connection.send_request("_WEFT.ask.subscribers", question, LIMIT_S)
        if sorted(each["name"] for each in answer["gateways"]) == sorted(names):
            return
        await asyncio.sleep(0.01)
