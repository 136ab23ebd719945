import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from weft.client.asyncio.connection import AsyncReceived, connect
from weft.client.status import Status
from weft.errors import BadOption, NotKnown, NotOpen, TimedOut, UsageError
from weft.gateway.config.settings import Settings, Tls
from weft.gateway.gateway import Gateway
from weft.wire.message.message import Message


async def test_a_connection_can_be_entered(gateway: str) -> None:
    async with connect(gateway, name="me.1") as connection:
        assert connection.is_connected
        assert connection.name == "me.1"
        assert connection.gateway
    assert not connection.is_connected


async def test_a_connection_can_be_awaited(gateway: str) -> None:
    connection = await connect(gateway)
    assert connection.is_connected
    async with connection:
        await connection.flush()
    assert not connection.is_connected


async def test_a_wrong_option_is_refused_before_anything_happens() -> None:
    options: dict[str, Any] = {"servise": "x"}
    with pytest.raises(BadOption, match="did you mean 'service'"):
        connect("127.0.0.1:1", **options)
    with pytest.raises(BadOption, match="address"):
        connect("nowhere:x")


@pytest.mark.req("HUB-6")
async def test_a_message_comes_back_unless_it_is_not_to(gateway: str) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe("a")
        await connection.publish("a", b"not back", not_back=True)
        await connection.publish("a", b"back")
        assert (await subscription.next()).payload == b"back"


async def test_a_message_says_where_it_came_from(gateway: str) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe("a")
        identity = await connection.publish("a", Message(x=1), reply="there", acknowledge=True)
        message = await subscription.next()
        assert message.reply == "there"
        assert identity == (message.origin, message.publisher, message.sequence, message.time)
        assert identity.sequence > 0


@pytest.mark.parametrize("body", [b"\x00\xff", "text", {"a": 1}, Message(a=1.5)])
async def test_whatever_can_be_published_arrives(gateway: str, body: Any) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe("a")
        await connection.publish("a", body)
        message = await subscription.next()
        if isinstance(body, bytes):
            assert message.payload == body
        elif isinstance(body, str):
            assert message.text == body
        else:
            assert message.to_dict() == (body.to_dict() if isinstance(body, Message) else body)


async def test_a_received_message_can_be_published_again(gateway: str) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe(["a", "b"])
        await connection.publish("a", {"n": 1})
        first = await subscription.next()
        await connection.publish("b", first)
        second = await subscription.next()
        assert (second.subject, second["n"]) == ("b", 1)


@pytest.mark.req("HUB-17")
async def test_a_request_that_nobody_serves_fails_at_once(gateway: str) -> None:
    async with connect(gateway) as connection:
        with pytest.raises(NotKnown):
            await connection.send_request("nobody.there", b"", 20)


async def test_many_requests_at_once_get_their_own_answers(gateway: str) -> None:
    async with connect(gateway) as connection, connect(gateway) as server:
        server.subscribe("double", lambda message: message.respond({"n": message["n"] * 2}))
        await server.flush()
        answers = await asyncio.gather(
            *(connection.send_request("double", {"n": number}) for number in range(200))
        )
        assert [answer["n"] for answer in answers] == [2 * number for number in range(200)]


async def test_a_handler_may_ask_on_its_own_connection(gateway: str) -> None:
    async with connect(gateway) as connection:

        async def relay(message: AsyncReceived) -> None:
            await message.respond(await connection.send_request("inner", message))

        connection.subscribe("outer", relay)
        connection.subscribe("inner", lambda message: message.respond({"n": message["n"] + 1}))
        assert (await connection.send_request("outer", {"n": 1}))["n"] == 2


async def test_everybody_who_hears_a_question_can_answer_it(gateway: str) -> None:
    async with connect(gateway) as connection, connect(gateway) as one, connect(gateway) as other:
        for server in (one, other):
            server.subscribe("who", lambda message: message.respond(message.subject))
            await server.flush()
        answers = await connection.gather("who", b"", count=2)
        assert [answer.text for answer in answers] == ["who", "who"]
        assert len({answer.publisher for answer in answers}) == 2


async def test_each_member_of_a_group_gets_its_share(gateway: str) -> None:
    async with connect(gateway) as connection, connect(gateway) as one, connect(gateway) as other:
        heard: list[str] = []
        done = asyncio.Event()

        def handle(name: str) -> None:
            heard.append(name)
            if len(heard) == 100:
                done.set()

        one.subscribe("jobs.*", lambda _: handle("one"), group="workers")
        other.subscribe("jobs.>", lambda _: handle("other"), group="workers")
        await one.flush()
        await other.flush()
        for number in range(100):
            await connection.publish(f"jobs.{number}", b"")
        await connection.flush()
        await done.wait()
        assert set(heard) == {"one", "other"}


@pytest.mark.req("HUB-4")
async def test_a_list_of_patterns_is_one_subscription(gateway: str) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe(["a", "b.*", "b.c"])
        await subscription.ready()
        for subject in ("a", "b.c", "x", "b.d"):
            await connection.publish(subject, b"")
        subjects = [(await subscription.next()).subject for _ in range(3)]
        assert subjects == ["a", "b.c", "b.d"]
        assert subscription.patterns == ["a", "b.*", "b.c"]


async def test_every_subscription_that_matches_gets_the_message(gateway: str) -> None:
    async with connect(gateway) as connection:
        both = [connection.subscribe("a.b"), connection.subscribe("a.*")]
        await connection.publish("a.b", b"")
        assert [(await each.next()).subject for each in both] == ["a.b", "a.b"]
        assert connection.statistics.unwanted == 0


async def test_draining_delivers_what_came_and_sends_what_is_said_of_it(gateway: str) -> None:
    async with connect(gateway) as listener:
        echoes = listener.subscribe("echo")
        await echoes.ready()
        connection = await connect(gateway)

        async def echo(message: AsyncReceived) -> None:
            await connection.publish("echo", message)

        subscription = connection.subscribe("a", echo)
        await subscription.ready()
        for number in range(500):
            await listener.publish("a", {"n": number})
        await listener.flush()
        await connection.drain()
        assert not connection.is_connected
        assert not subscription.is_open
        assert [(await echoes.next())["n"] for _ in range(500)] == list(range(500))


async def test_draining_lets_a_loop_finish(gateway: str) -> None:
    connection = await connect(gateway)
    subscription = connection.subscribe("a")
    for number in range(100):
        await connection.publish("a", {"n": number})

    async def iterate() -> list[int]:
        return [message["n"] async for message in subscription]

    iterating = asyncio.create_task(iterate())
    await connection.drain()
    assert await iterating == list(range(100))


async def test_draining_ends_even_if_a_loop_does_not(gateway: str) -> None:
    connection = await connect(gateway)
    connection.subscribe("a")
    await connection.publish("a", b"which nobody takes")
    with pytest.raises(TimedOut, match="not everything was delivered"):
        await connection.drain(0.1)
    with pytest.raises(NotOpen):
        await connection.flush()


async def test_a_handler_does_not_drain_its_own_connection(gateway: str) -> None:
    statuses: list[Status] = []
    async with connect(gateway, on_status=statuses.append) as connection:
        tried = asyncio.Event()

        async def handle(_: AsyncReceived) -> None:
            try:
                await connection.drain()
            except UsageError:
                tried.set()

        connection.subscribe("a", handle)
        await connection.publish("a", b"")
        await tried.wait()
        assert connection.is_connected


async def test_a_draining_connection_takes_no_new_subscription(gateway: str) -> None:
    connection = await connect(gateway)
    refused = asyncio.Event()

    def handle(_: AsyncReceived) -> None:
        try:
            connection.subscribe("b")
        except NotOpen:
            refused.set()

    connection.subscribe("a", handle)
    await connection.publish("a", b"")
    connection._engine.subscriptions.withdraw()
    await refused.wait()
    await connection.close()


async def test_a_handler_may_close_the_connection(gateway: str) -> None:
    connection = await connect(gateway)
    closed = asyncio.Event()

    async def handle(_: AsyncReceived) -> None:
        await connection.close()
        closed.set()

    connection.subscribe("a", handle)
    await connection.publish("a", b"")
    await closed.wait()
    assert not connection.is_connected


async def test_a_closed_connection_ends_every_loop(gateway: str) -> None:
    connection = await connect(gateway)
    subscription = connection.subscribe("a")
    iterating = asyncio.ensure_future(subscription.next())
    await subscription.ready()
    await connection.close()
    with pytest.raises(NotOpen):
        await iterating


async def test_what_was_done_is_counted(gateway: str) -> None:
    async with connect(gateway) as connection:
        subscription = connection.subscribe("a")
        await connection.publish("a", b"x" * 1000)
        await subscription.next()
        statistics = connection.statistics
        assert statistics.connects == 1
        assert statistics.sent_bytes > 1000
        assert statistics.received_bytes > 1000


async def test_a_gateway_is_reached_through_tls(certificates: Path) -> None:
    tls = Tls(cert=str(certificates / "first.pem"), key=str(certificates / "first.key"))
    trusting = ssl.create_default_context(cafile=certificates / "first.pem")
    settings = Settings(tls=tls)
    async with Gateway("127.0.0.1:0", settings=settings, workers="inline") as gateway:
        port = gateway.address.rpartition(":")[2]
        async with connect(f"tls://localhost:{port}", tls=trusting) as connection:
            subscription = connection.subscribe("a")
            await connection.publish("a", b"x" * 500_000)
            assert (await subscription.next()).payload == b"x" * 500_000


@pytest.mark.req("MM-13")
async def test_services_do_not_hear_each_other(gateway: str) -> None:
    async with connect(gateway, service="one") as one, connect(gateway, service="other") as other:
        subscription = other.subscribe("a")
        await subscription.ready()
        await one.publish("a", b"for one")
        await one.flush()
        await other.publish("a", b"for the other")
        assert (await subscription.next()).payload == b"for the other"


async def test_handlers_are_stopped_before_the_connection_refuses_what_they_say(
    gateway: str,
) -> None:
    statuses: list[Status] = []
    connection = await connect(gateway, on_status=statuses.append)
    began = asyncio.Event()

    async def handle(_: AsyncReceived) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await connection.publish("last.words", b"")

    connection.subscribe("a", handle)
    for _ in range(5):
        await connection.publish("a", b"")
    await began.wait()
    await connection.close()
    assert [status.what for status in statuses] == ["connected", "closed"]


async def test_a_handler_that_closes_the_connection_gets_nothing_more(gateway: str) -> None:
    connection = await connect(gateway)
    seen: list[bytes] = []
    closed = asyncio.Event()

    async def handle(message: AsyncReceived) -> None:
        seen.append(message.payload)
        await connection.close()
        closed.set()

    connection.subscribe("a", handle)
    for number in range(5):
        await connection.publish("a", b"%d" % number)
    await closed.wait()
    assert not connection._tasks or await asyncio.wait(connection._tasks)
    assert seen == [b"0"]


async def test_a_cancelled_close_stops_the_handlers_and_the_connection(gateway: str) -> None:
    connection = await connect(gateway)
    began, told, go = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handle(_: AsyncReceived) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.set()
            await go.wait()

    connection.subscribe("a", handle)
    await connection.publish("a", b"")
    await began.wait()
    closing = asyncio.create_task(connection.close())
    await told.wait()
    closing.cancel()
    await asyncio.wait({closing})
    assert closing.cancelled()
    go.set()
    await connection.close()
    assert not connection.is_connected


async def test_a_connection_shows_where_it_is(gateway: str) -> None:
    async with connect(gateway, service="weather", name="me.1") as connection:
        open_form = f"<AsyncConnection me.1 of weather, at {connection.gateway}, tcp://{gateway}>"
        assert repr(connection) == open_form
    assert repr(connection) == "<AsyncConnection me.1 of weather, closed>"
