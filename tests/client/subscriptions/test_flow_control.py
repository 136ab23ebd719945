"""How back-pressure reaches the gateway, shown with a scripted one that never stops sending."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from weft.client.asyncio.connection import AsyncConnection, connect
from weft.client.publish.encode import message_frame
from weft.client.status import Gap
from weft.wire.frames import Kind

Scripted = Callable[[], AbstractAsyncContextManager[Any]]

QUEUE_BYTES = 100_000
BODY = b"x" * 1000
BEYOND = 4000


async def flood(peer: Any, connection: AsyncConnection) -> int:
    """Send until the client reads no more, and then a lot more; how many messages were sent."""
    frame = message_frame("a", BODY)
    count = 0
    while not is_resting(connection):
        peer.writer.write(frame)
        count += 1
        await turn()
    peer.writer.write(frame * BEYOND)
    return count + BEYOND


async def turn() -> None:
    """Let everybody else run once."""
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0)


def is_resting(connection: AsyncConnection) -> bool:
    line = connection._engine.line
    return line is not None and line.is_resting


async def test_a_full_queue_stops_the_reading_and_an_emptied_one_starts_it(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address))
        peer = await gateway.peer()
        connection = await connecting
        subscription = connection.subscribe("a", queue_bytes=QUEUE_BYTES)
        await peer.confirm()
        count = await flood(peer, connection)
        assert subscription._queue._intake.held_bytes < 2 * QUEUE_BYTES + (2 << 20)
        assert connection.statistics.received_bytes < count * len(BODY)
        for _ in range(count):
            await subscription.next(10)
        assert connection.statistics.overflowed == 0
        peer.close()
        await gateway.part(connection)


async def test_an_answer_is_read_from_behind_a_full_queue(scripted: Scripted) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address))
        peer = await gateway.peer()
        connection = await connecting
        gaps: list[Gap] = []
        subscription = connection.subscribe("a", queue_bytes=QUEUE_BYTES, on_gap=gaps.append)
        await peer.confirm()
        count = await flood(peer, connection)
        asking = asyncio.create_task(connection.send_request("q", b"", 20))
        asked = await peer.frame(Kind.MESSAGE)
        peer.send(Kind.MESSAGE, asked.reply, b"")
        assert (await asking).subject == asked.reply.decode()
        got = 0
        while got + connection.statistics.overflowed < count:
            await subscription.next(10)
            got += 1
        # What the queue could not hold was thrown away, counted, and is announced with the next.
        peer.send(Kind.MESSAGE, b"a", b"")
        await subscription.next(10)
        lost = connection.statistics.overflowed
        assert lost > 0
        assert sum(gap.count or 0 for gap in gaps) == lost
        assert {gap.reason for gap in gaps} == {"full"}
        await gateway.part(connection)


async def test_a_closed_subscription_holds_nobody_up(scripted: Scripted) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address))
        peer = await gateway.peer()
        connection = await connecting
        full = connection.subscribe("a", queue_bytes=QUEUE_BYTES)
        await peer.confirm()
        other = connection.subscribe("b")
        await peer.confirm()
        await flood(peer, connection)
        peer.send(Kind.MESSAGE, b"b", b"")
        await full.close()
        assert (await other.next(10)).subject == "b"
        await gateway.part(connection)
