import asyncio
from typing import Any

import pytest

from weft.client.asyncio.connection import AsyncReceived, connect
from weft.client.status import Gap, Status, What
from weft.errors import BadOption, BadSubject, NotOpen, TimedOut, UsageError


async def test_messages_are_iterated_over_until_the_end(gateway: str) -> None:
    async with connect(gateway) as connection:
        seen = []
        async with connection.subscribe("a.*") as subscription:
            for number in range(3):
                await connection.publish(f"a.{number}", {"number": number})
            async for message in subscription:
                seen.append((message.subject, message["number"]))
                if len(seen) == 3:
                    break
        assert seen == [("a.0", 0), ("a.1", 1), ("a.2", 2)]
        assert not subscription.is_open
        assert [message async for message in subscription] == []


async def test_one_closed_elsewhere_ends_its_iteration(gateway: str) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe("a")

        async def iterate() -> list[AsyncReceived]:
            return [message async for message in subscription]

        iterating = asyncio.create_task(iterate())
        await subscription.ready()
        await subscription.close()
        assert await iterating == []


@pytest.mark.req("MM-18")
async def test_closing_it_ends_the_subscription(gateway: str) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe("a")
        await subscription.close()
        await subscription.close()
        await connection.publish("a", b"")
        await connection.flush()
        with pytest.raises(NotOpen, match="the subscription to a is closed"):
            await subscription.next()


async def test_the_next_message_is_waited_for_only_so_long(gateway: str) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe(["a", "b"])
        with pytest.raises(TimedOut, match=r"no message to a, b in 0\.01 s"):
            await subscription.next(0.01)


@pytest.mark.req("MM-1")
async def test_a_plain_handler_gets_messages_one_after_the_other(gateway: str) -> None:
    async with connect(gateway) as connection:
        done = asyncio.Event()
        seen: list[int] = []

        def handle(message: AsyncReceived) -> None:
            seen.append(message["number"])
            if len(seen) == 100:
                done.set()

        connection.subscribe("a", handle)
        for number in range(100):
            await connection.publish("a", {"number": number})
        await done.wait()
        assert seen == list(range(100))


@pytest.mark.req("MM-1")
async def test_an_async_handler_finishes_one_before_it_gets_the_next(gateway: str) -> None:
    async with connect(gateway) as connection:
        done = asyncio.Event()
        said: list[str] = []

        async def handle(message: AsyncReceived) -> None:
            said.append(f"begin {message['number']}")
            await connection.flush()
            said.append(f"end {message['number']}")
            if message["number"] == 2:
                done.set()

        connection.subscribe("a", handle)
        for number in range(3):
            await connection.publish("a", {"number": number})
        await done.wait()
        assert said == [f"{what} {number}" for number in range(3) for what in ("begin", "end")]


async def test_a_handler_that_raises_is_reported_and_gets_the_next(gateway: str) -> None:
    statuses: list[Status] = []
    async with connect(gateway, on_status=statuses.append) as connection:
        done = asyncio.Event()

        def handle(message: AsyncReceived) -> None:
            if message.payload == b"bad":
                raise ValueError("cannot")
            done.set()

        connection.subscribe("a", handle)
        await connection.publish("a", b"bad")
        await connection.publish("a", b"good")
        await done.wait()
    errors = [status.error for status in statuses if status.what is What.HANDLER]
    assert [str(error) for error in errors] == ["cannot"]


async def test_a_handler_that_awaits_what_is_cancelled_gets_the_next(gateway: str) -> None:
    async with connect(gateway) as connection:
        done = asyncio.Event()

        async def handle(message: AsyncReceived) -> None:
            if message.payload == b"bad":
                cancelled = asyncio.get_running_loop().create_future()
                cancelled.cancel()
                await cancelled
            done.set()

        connection.subscribe("a", handle)
        await connection.publish("a", b"bad")
        await connection.publish("a", b"good")
        await done.wait()


async def test_a_handler_that_cancels_its_own_task_gets_the_next(gateway: str) -> None:
    connection = await connect(gateway)
    seen: list[bytes] = []

    async def handle(message: AsyncReceived) -> None:
        seen.append(message.payload)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    connection.subscribe("a", handle)
    for number in range(3):
        await connection.publish("a", b"%d" % number)
    await connection.flush()
    await connection.publish("a", b"after a pause")
    await connection.drain()
    assert seen == [b"0", b"1", b"2", b"after a pause"]


async def test_a_gap_callback_that_raises_is_reported_too(running: Any) -> None:
    failed = asyncio.Event()

    def heard(status: Status) -> None:
        if status.what is What.HANDLER:
            failed.set()

    def broken(_: Gap) -> None:
        raise ValueError("cannot")

    async with connect(running.address, on_status=heard, backoff_first_s=0.001) as connection:
        done = asyncio.Event()
        subscription = connection.subscribe("a", lambda _: done.set(), on_gap=broken)
        await subscription.ready()
        running.stop()
        running.start()
        await failed.wait()
        await connection.publish("a", b"")
        await done.wait()


async def test_a_handler_may_close_its_own_subscription(gateway: str) -> None:
    async with connect(gateway) as connection:
        seen: list[bytes] = []
        closed = asyncio.Event()

        async def handle(message: AsyncReceived) -> None:
            seen.append(message.payload)
            await subscription.close()
            closed.set()

        subscription = connection.subscribe("a", handle)
        for _ in range(10):
            await connection.publish("a", b"once")
        await closed.wait()
        await connection.flush()
        assert seen == [b"once"]


async def test_closing_stops_a_handler_that_is_at_work(gateway: str) -> None:
    async with connect(gateway) as connection:
        began, stopped = asyncio.Event(), asyncio.Event()

        async def handle(_: AsyncReceived) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        subscription = connection.subscribe("a", handle)
        await connection.publish("a", b"")
        await began.wait()
        await subscription.close()
        assert stopped.is_set()


async def test_one_with_a_handler_is_not_iterated_over(gateway: str) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe("a", lambda _: None)
        with pytest.raises(UsageError, match="with a handler"):
            await subscription.next()
        with pytest.raises(UsageError, match="with a handler"):
            aiter(subscription)


async def test_one_that_cannot_be_leaves_nothing_behind(gateway: str) -> None:
    async with connect(gateway) as connection:
        connection.subscribe("a")
        with pytest.raises(BadSubject):
            connection.subscribe("a..b")
        with pytest.raises(BadOption):
            connection.subscribe("a", policy="latest")
        assert len(connection._engine.reading._intakes) == 1


async def test_an_answer_goes_to_whoever_asked(gateway: str) -> None:
    async with connect(gateway) as connection:
        connection.subscribe("q", lambda message: message.respond({"twice": message["n"] * 2}))
        assert (await connection.send_request("q", {"n": 21}))["twice"] == 42


async def test_a_message_that_awaits_no_answer_is_not_answered(gateway: str) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe("a")
        await connection.publish("a", b"")
        message = await subscription.next()
        with pytest.raises(UsageError, match="this message to 'a' expects no answer"):
            await message.respond(b"")
