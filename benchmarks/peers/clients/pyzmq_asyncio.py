"""pyzmq's asyncio face, on uvloop: PUB to SUB, and REQ to REP, over loopback without a broker."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import uvloop
import zmq
from zmq.asyncio import Context

from benchmarks.peers.clients.driving import (
    SUBJECT,
    Figures,
    Heard,
    Task,
    async_flow,
    async_requests,
)

_ANY_PORT = "tcp://127.0.0.1"


def run(task: Task) -> Figures:
    """Measure."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(task))


async def _run(task: Task) -> Figures:
    context = Context()
    try:
        if task.case == "request":
            return await _requests(context, task)
        return await _flow(context, task)
    finally:
        context.destroy(0)


async def _flow(context: Context, task: Task) -> Figures:
    heard = Heard()
    publisher = context.socket(zmq.XPUB)
    publisher.setsockopt(zmq.SNDHWM, 0)
    subscriber = context.socket(zmq.SUB)
    subscriber.setsockopt(zmq.RCVHWM, 0)
    subscriber.connect(f"{_ANY_PORT}:{publisher.bind_to_random_port(_ANY_PORT)}")
    subscriber.subscribe(SUBJECT)
    await publisher.recv()  # The subscription has come.
    subject = SUBJECT.encode()
    start = len(subject)

    async def listen() -> None:
        while True:
            body = (await subscriber.recv())[start:]
            if task.is_typed:
                heard.fields(json.loads(body))
            else:
                heard.message(body)

    async with _meanwhile(listen()):
        return await async_flow(lambda _, body: publisher.send(subject + body), heard, task)


async def _requests(context: Context, task: Task) -> Figures:
    responder = context.socket(zmq.REP)
    asking = context.socket(zmq.REQ)
    asking.connect(f"{_ANY_PORT}:{responder.bind_to_random_port(_ANY_PORT)}")

    async def answer() -> None:
        while True:
            await responder.recv()
            await responder.send(b"pong")

    async def ask() -> None:
        await asking.send(b"ping")
        await asking.recv()

    async with _meanwhile(answer()):
        return await async_requests(ask, task)


@contextlib.asynccontextmanager
async def _meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
