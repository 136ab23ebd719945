"""nats-py, on uvloop, to be on a level with the others."""

import asyncio
import json
from typing import Any

import nats
import uvloop

from benchmarks.peers.clients.driving import (
    SUBJECT,
    Figures,
    Heard,
    Task,
    async_flow,
    async_requests,
)


def run(task: Task) -> Figures:
    """Measure."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(task))


async def _run(task: Task) -> Figures:
    address = f"nats://127.0.0.1:{task.port}"
    heard = Heard()
    subscriber = await nats.connect(address)
    publisher = await nats.connect(address)

    async def answer(message: Any) -> None:
        await message.respond(b"pong")

    async def hear(message: Any) -> None:
        heard.message(message)

    async def hear_fields(message: Any) -> None:
        heard.fields(json.loads(message.data))

    if task.case == "request":
        await subscriber.subscribe("question", cb=answer)
    else:
        await subscriber.subscribe(SUBJECT, cb=hear_fields if task.is_typed else hear)
    await subscriber.flush()
    try:
        if task.case == "request":
            return await async_requests(lambda: publisher.request("question", b"ping"), task)
        return await async_flow(publisher.publish, heard, task)
    finally:
        await publisher.close()
        await subscriber.close()
