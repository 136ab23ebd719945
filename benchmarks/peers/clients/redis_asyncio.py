"""redis-py's asyncio face, on uvloop: publishing by pipelines of a batch, listening in a task.

Redis has no requests: a question is a message with another channel for the answer.
"""

import asyncio
import contextlib
import json
from typing import Any

import redis.asyncio as redis
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
    async with contextlib.AsyncExitStack() as stack:
        publisher, listener, answerer = [
            await stack.enter_async_context(redis.Redis(port=task.port)) for _ in range(3)
        ]
        subscriber = listener.pubsub(ignore_subscribe_messages=True)
        if task.case == "request":
            return await _requests(publisher, answerer, subscriber, task)
        return await _flow(publisher, subscriber, task)


async def _flow(publisher: Any, subscriber: Any, task: Task) -> Figures:
    heard = Heard()
    pipeline = publisher.pipeline(transaction=False)

    def hear(message: dict[str, Any]) -> None:
        if task.is_typed:
            heard.fields(json.loads(message["data"]))
        else:
            heard.message(message)

    await subscriber.subscribe(**{SUBJECT: hear})
    listening = asyncio.create_task(subscriber.run())
    try:
        return await async_flow(pipeline.publish, heard, task, flush=pipeline.execute)
    finally:
        await _ended(listening)


async def _requests(publisher: Any, answerer: Any, subscriber: Any, task: Task) -> Figures:
    answers = publisher.pubsub(ignore_subscribe_messages=True)
    await answers.subscribe("answer")
    await answers.get_message(timeout=1)

    async def answer(_: dict[str, Any]) -> None:
        await answerer.publish("answer", b"pong")

    async def ask() -> None:
        await publisher.publish("question", b"ping")
        while await answers.get_message(timeout=1) is None:
            continue

    await subscriber.subscribe(question=answer)
    await subscriber.get_message(timeout=1)
    listening = asyncio.create_task(subscriber.run())
    try:
        return await async_requests(ask, task)
    finally:
        await _ended(listening)


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
