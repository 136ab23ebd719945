"""aiomqtt, which wraps paho-mqtt for asyncio, on uvloop: a task that listens, quality of service 0.

MQTT 3.1.1 has no requests: a question is a message with another topic for the answer.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import uvloop
from aiomqtt import Client

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
    heard = Heard()
    async with (
        Client("127.0.0.1", task.port) as publisher,
        Client("127.0.0.1", task.port) as subscriber,
    ):

        async def hear(message: Any) -> None:
            if task.is_typed:
                heard.fields(json.loads(message.payload))
            else:
                heard.message(message)

        async def answer(_: Any) -> None:
            await subscriber.publish("answer", b"pong")

        async def ask() -> None:
            await publisher.publish("question", b"ping")
            await anext(answers)

        if task.case == "request":
            await publisher.subscribe("answer")
            answers = aiter(publisher.messages)
            async with _listening(subscriber, "question", answer):
                return await async_requests(ask, task)
        async with _listening(subscriber, SUBJECT, hear):
            return await async_flow(publisher.publish, heard, task)


@contextlib.asynccontextmanager
async def _listening(
    client: Client, topic: str, callback: Callable[[Any], Awaitable[None]]
) -> AsyncIterator[None]:
    async def listen() -> None:
        async for message in client.messages:
            await callback(message)

    await client.subscribe(topic)
    task = asyncio.create_task(listen())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
