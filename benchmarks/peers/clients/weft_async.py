"""Weft's asyncio client, on uvloop as its documentation advises."""

import asyncio

import uvloop

import weft
from benchmarks.peers.clients.driving import (
    SUBJECT,
    Figures,
    Heard,
    Task,
    async_flow,
    async_requests,
    fields,
)


def run(task: Task) -> Figures:
    """Measure."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(task))


async def _run(task: Task) -> Figures:
    address = f"127.0.0.1:{task.port}"
    heard = Heard()
    async with weft.connect(address) as subscriber, weft.connect(address) as publisher:
        if task.case == "request":

            async def answer(message: weft.AsyncReceived) -> None:
                await message.respond(b"pong")

            await subscriber.subscribe("question", answer).ready()
            return await async_requests(lambda: publisher.send_request("question", b"ping"), task)
        handler = heard.fields if task.is_typed else heard.message
        await subscriber.subscribe(SUBJECT, handler).ready()
        return await async_flow(publisher.publish, heard, task, fields)
