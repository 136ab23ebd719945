"""What a drain waits for, with both faces and a real gateway."""

import asyncio
import threading

import pytest

from weft.client.asyncio.connection import connect
from weft.client.subscriptions.iteration import Loop, Loops
from weft.client.sync.connection import Connection
from weft.errors import TimedOut


def test_a_message_is_dealt_with_once() -> None:
    released: list[bytes] = []
    loop = Loop(Loops(), released.append)
    loop.finish()
    loop.begin(b"1", "me")
    loop.finish()
    loop.finish()
    assert released == [b"1"]


def test_a_loop_that_is_left_has_dealt_with_its_message() -> None:
    released: list[bytes] = []
    loop = Loop(Loops(), released.append)
    loop.begin(b"1", "me")
    del loop
    assert released == [b"1"]


def test_only_the_loops_of_one_worker_are_finished() -> None:
    released: list[bytes] = []
    loops = Loops()
    mine, yours = Loop(loops, released.append), Loop(loops, released.append)
    mine.begin(b"mine", "me")
    yours.begin(b"yours", "you")
    loops.finish("me")
    assert released == [b"mine"]


async def test_a_drain_waits_for_the_body_of_a_loop(gateway: str) -> None:
    async with connect(gateway) as listener:
        heard = listener.subscribe("out")
        await heard.ready()
        connection = await connect(gateway)
        subscription = connection.subscribe("in")
        await subscription.ready()
        began, go = asyncio.Event(), asyncio.Event()

        async def iterate() -> None:
            async for message in subscription:
                began.set()
                await go.wait()
                await connection.publish("out", message)

        iterating = asyncio.create_task(iterate())
        for number in range(2):
            await connection.publish("in", b"%d" % number)
        await began.wait()
        draining = asyncio.create_task(connection.drain())
        # The gateway has long answered by then that it sends nothing more.
        await listener.flush()
        go.set()
        await draining
        await iterating
        assert [(await heard.next(10)).payload for _ in range(2)] == [b"0", b"1"]


def test_a_drain_waits_for_the_body_of_a_blocking_loop(gateway: str) -> None:
    with Connection(gateway) as listener:
        heard = listener.subscribe("out")
        connection = Connection(gateway)
        subscription = connection.subscribe("in")
        began, go = threading.Event(), threading.Event()
        errors: list[Exception] = []

        def iterate() -> None:
            try:
                for message in subscription:
                    began.set()
                    assert go.wait(30)
                    connection.publish("out", message)
            except Exception as error:
                errors.append(error)

        iterating = threading.Thread(target=iterate)
        iterating.start()
        for number in range(2):
            connection.publish("in", b"%d" % number)
        assert began.wait(30)
        draining = threading.Thread(target=connection.drain)
        draining.start()
        listener.flush()
        go.set()
        draining.join(30)
        iterating.join(30)
        assert errors == []
        assert [heard.next(10).payload for _ in range(2)] == [b"0", b"1"]


async def test_a_drain_does_not_wait_for_a_loop_that_was_left(gateway: str) -> None:
    connection = await connect(gateway)
    subscription = connection.subscribe("in")
    await connection.publish("in", b"")
    async for _ in subscription:
        break
    await connection.publish("in", b"")
    await subscription.next()
    await connection.drain()


async def test_the_body_of_a_loop_may_drain(gateway: str) -> None:
    connection = await connect(gateway)
    subscription = connection.subscribe("in")
    await connection.publish("in", b"")
    async for _ in subscription:
        await connection.drain()


def test_the_body_of_a_blocking_loop_may_drain(gateway: str) -> None:
    connection = Connection(gateway)
    subscription = connection.subscribe("in")
    connection.publish("in", b"")
    for _ in subscription:
        connection.drain()


async def test_a_drain_does_not_wait_for_what_is_closed_meanwhile(gateway: str) -> None:
    connection = await connect(gateway)
    subscription = connection.subscribe("in")
    await connection.publish("in", b"which nobody takes")
    other = connection.subscribe("other")
    draining = asyncio.create_task(connection.drain())
    # It ends when nothing more comes, which is when the drain begins to wait for what came.
    assert [message async for message in other] == []
    await subscription.close()
    await draining


async def test_a_loop_that_does_not_end_is_waited_for_only_so_long(gateway: str) -> None:
    connection = await connect(gateway)
    subscription = connection.subscribe("in")
    await connection.publish("in", b"")
    loop = aiter(subscription)
    await anext(loop)
    with pytest.raises(TimedOut, match="not everything was delivered"):
        await asyncio.create_task(connection.drain(0.05))
