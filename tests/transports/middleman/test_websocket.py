import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
from tests.transports.hallway import hallway
from tests.transports.loops import until
from tests.transports.middleman.raw_peer import (
    LIMIT_S,
    MiddlemanPeer,
    dialled,
    error_in,
    let_in,
)
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from weft.broker.limits import Limits
from weft.gateway.config.settings import Settings
from weft.gateway.gateway import Gateway
from weft.transports.middleman.protocol import MiddlemanMessage, written
from weft.transports.middleman.websocket import KEY_MAX, NOT_LET_IN

HERE = "127.0.0.1:0"


@asynccontextmanager
async def running(**limits: Any) -> AsyncIterator[str]:
    """A gateway with these limits: where it listens."""
    settings = Settings(limits=Limits(**limits))
    async with Gateway(HERE, settings=settings, workers="inline") as gateway:
        yield gateway.address


@asynccontextmanager
async def company(count: int, **limits: Any) -> AsyncIterator[list[MiddlemanPeer]]:
    """So many peers of one gateway."""
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(running(**limits))
        yield [await stack.enter_async_context(let_in(address)) for _ in range(count)]


@pytest.mark.req("MID-1", "MID-2")
@pytest.mark.parametrize("key", ["MyServerKey", "", "line\n", "line\r\n", "x" * KEY_MAX, "PUB a"])
async def test_the_first_message_is_a_key_and_is_answered_by_a_word(key: str) -> None:
    async with running() as address, dialled(address) as peer:
        await peer.send(key)
        assert await peer.recv() == "MM OK"
        assert await peer.settle() == []


@pytest.mark.req("MID-2")
@pytest.mark.parametrize("key", ["x" * (KEY_MAX + 1), b"MyServerKey"])
async def test_who_is_not_let_in_is_told_nothing(key: str | bytes) -> None:
    async with running() as address, dialled(address) as peer:
        await peer.send(key)
        close = await peer.closed()
        assert (close.code, close.reason) == (NOT_LET_IN, "")


@pytest.mark.req("MID-2")
async def test_who_shows_no_key_in_time_is_told_nothing() -> None:
    async with running(greeting_s=0.1) as address, dialled(address) as peer:
        close = await peer.closed()
        assert (close.code, close.reason) == (NOT_LET_IN, "")


async def test_a_key_and_more_may_come_at_once() -> None:
    async with running() as address, dialled(address) as peer:
        for text in ("key", "SUB a\n\n.\n", "PUB a\n\nhello\n.\n"):
            await peer.send(text)
        assert await peer.recv() == "MM OK"
        assert await peer.told() == MiddlemanMessage("PUB", "a", {}, "hello")


@pytest.mark.parametrize("offered", ["middleman", "chat"])
async def test_a_subprotocol_that_is_offered_is_passed_over(offered: str) -> None:
    async with running() as address:
        url = f"ws://{address}/default/middleman"
        async with connect(url, subprotocols=[offered], open_timeout=LIMIT_S) as socket:  # type: ignore[list-item]  # a str in all but its name
            assert socket.subprotocol is None
            await socket.send("key")
            assert await socket.recv() == "MM OK"


@pytest.mark.req("MID-4", "MID-6", "MID-7")
async def test_what_is_published_reaches_all_subscribers_and_nobody_else() -> None:
    async with company(4) as (publisher, first, second, other):
        await publisher.say("PUB", "weather.london", "before")
        await first.subscribe("weather.london")
        await second.subscribe("weather.london")
        await other.subscribe("weather.paris")
        await publisher.send("PUB weather.london\r\nX: 1\r\n\r\nsunny\r\n.\r\n")
        for peer in (first, second):
            assert await peer.recv() == "PUB weather.london\n\nsunny\n.\n"
        assert await other.settle() == []
        assert await publisher.settle() == []


@pytest.mark.req("MID-6")
async def test_a_publisher_that_subscribed_hears_itself_once() -> None:
    async with company(1) as (peer,):
        await peer.subscribe("a")
        await peer.subscribe("a")
        await peer.say("PUB", "a", "x")
        assert await peer.settle() == [MiddlemanMessage("PUB", "a", {}, "x")]


@pytest.mark.req("MID-5")
@pytest.mark.parametrize(
    "body", ["", ".", "..", ".a", "a\n.\nb", "a\n", "no end", "\n", "\r", "a\r\n.\r\n", "ü\0\x85"]
)
async def test_a_body_arrives_as_it_was_sent(body: str) -> None:
    async with company(2) as (publisher, subscriber):
        await subscriber.subscribe("a")
        await publisher.say("PUB", "a", body)
        assert await subscriber.told() == MiddlemanMessage("PUB", "a", {}, body)


@pytest.mark.req("MID-9", "MID-11")
async def test_a_request_reaches_one_and_its_answer_the_requester() -> None:
    async with company(4) as (client, other, first, second):
        await first.subscribe("time")
        await second.subscribe("time")
        await client.say("REQ", "time", "now?", ReqID="7")
        assert await client.settle() == []
        given = [(peer, said) for peer in (first, second) for said in await peer.settle()]
        [(service, request)] = given
        assert request == MiddlemanMessage("REQ", "time", {"reqid": request.request_id}, "now?")
        assert request.request_id != "7"
        await service.say("RES", "time", "noon", ReqID=request.request_id)
        assert await client.told() == MiddlemanMessage("RES", "time", {"reqid": "7"}, "noon")
        assert await service.settle() == await other.settle() == []


@pytest.mark.req("MID-8")
async def test_a_request_without_an_id_is_not_delivered() -> None:
    async with company(2) as (client, service):
        await service.subscribe("time")
        await client.say("REQ", "time", "now?")
        assert error_in(await client.told()) == ("time", "BadOption", "")
        assert await service.settle() == []


@pytest.mark.req("MID-11")
async def test_clients_with_the_same_request_id_never_cross() -> None:
    async with company(3) as (one, two, service):
        await service.subscribe("echo")
        await one.say("REQ", "echo", "one", ReqID="1")
        await two.say("REQ", "echo", "two", ReqID="1")
        requests = [await service.told() for _ in range(2)]
        assert len({request.request_id for request in requests}) == 2
        for request in sorted(requests, key=lambda said: said.body, reverse=True):
            await service.say("RES", "echo", request.body, ReqID=request.request_id)
        assert await one.told() == MiddlemanMessage("RES", "echo", {"reqid": "1"}, "one")
        assert await two.told() == MiddlemanMessage("RES", "echo", {"reqid": "1"}, "two")
        assert await one.settle() == await two.settle() == []


@pytest.mark.req("MID-11")
async def test_an_id_answers_once_and_for_whoever_was_given_it() -> None:
    async with company(3) as (client, service, thief):
        await service.subscribe("time")
        await client.say("REQ", "time", "", ReqID="7")
        stand_in = (await service.told()).request_id
        for request_id in (stand_in, "7", "unknown"):
            await thief.say("RES", "time", "stolen", ReqID=request_id)
            assert error_in(await thief.told()) == ("time", "NotYours", request_id)
        await thief.say("RES", "time", "stolen")
        assert error_in(await thief.told()) == ("time", "BadOption", "")
        assert await client.settle() == []
        await service.say("RES", "time", "noon", ReqID=stand_in)
        await service.say("RES", "time", "again", ReqID=stand_in)
        assert error_in(await service.told()) == ("time", "NotYours", stand_in)
        assert await client.told() == MiddlemanMessage("RES", "time", {"reqid": "7"}, "noon")
        assert await client.settle() == []


@pytest.mark.req("MID-11")
async def test_an_id_may_wait_once_and_be_used_again() -> None:
    async with company(2) as (client, service):
        await service.subscribe("time")
        await client.say("REQ", "time", "first", ReqID="7")
        await client.say("REQ", "time", "second", ReqID="7")
        assert error_in(await client.told()) == ("time", "UsageError", "7")
        for body in ("first", "third"):
            request = await service.told()
            assert request.body == body
            await service.say("RES", "time", body, ReqID=request.request_id)
            assert await client.told() == MiddlemanMessage("RES", "time", {"reqid": "7"}, body)
            await client.say("REQ", "time", "third", ReqID="7")


@pytest.mark.req("MID-10")
async def test_a_busy_service_gets_fewer_requests() -> None:
    async with company(3) as (client, busy, idle):
        await busy.subscribe("work")
        await idle.subscribe("work")
        for number in range(2):
            await client.say("REQ", "work", "", ReqID=f"both {number}")
        # One each: from now on one of them keeps its request, the other answers every one.
        assert len(await busy.settle()) == 1
        [request] = await idle.settle()
        for number in range(8):
            await idle.say("RES", "work", "", ReqID=request.request_id)
            assert (await client.told()).command == "RES"
            await client.say("REQ", "work", "", ReqID=f"more {number}")
            request = await idle.told()
        assert await busy.settle() == []


async def test_a_request_that_nobody_serves_is_an_error_at_once() -> None:
    async with company(1) as (client,):
        await client.say("REQ", "time", "", ReqID="7")
        assert error_in(await client.told()) == ("time", "NotKnown", "7")


@pytest.mark.req("MID-14")
async def test_services_join_and_leave_while_it_runs() -> None:
    async with running() as address, let_in(address) as client:
        for number in range(3):
            async with let_in(address) as service:
                await service.subscribe("time")
                await client.say("REQ", "time", "", ReqID=str(number))
                request = await service.told()
                await service.say("RES", "time", "noon", ReqID=request.request_id)
                assert await client.told() == MiddlemanMessage(
                    "RES", "time", {"reqid": str(number)}, "noon"
                )
            while not await is_unserved(client, "time"):
                pass


async def is_unserved(client: MiddlemanPeer, target: str) -> bool:
    await client.say("REQ", target, "", ReqID="anybody")
    return error_in(await client.told())[1] == "NotKnown"


@pytest.mark.req("MID-15")
async def test_a_responder_that_dies_is_an_error_at_once() -> None:
    async with running() as address, let_in(address) as client:
        async with let_in(address) as service:
            await service.subscribe("time")
            await client.say("REQ", "time", "", ReqID="7")
            await service.told()
            service.socket.transport.abort()
            assert error_in(await client.told()) == ("time", "ResponderGone", "7")
        assert await client.settle() == []


async def test_a_requester_that_leaves_is_no_fault_of_the_responder() -> None:
    async with running() as address, let_in(address) as service:
        await service.subscribe("time")
        async with let_in(address) as client:
            await client.say("REQ", "time", "", ReqID="7")
            request = await service.told()
        await service.say("RES", "time", "noon", ReqID=request.request_id)
        assert await service.settle() == []


async def test_a_request_that_is_never_answered_is_an_error_in_the_end() -> None:
    async with company(2, request_s=0.1) as (client, service):
        await service.subscribe("time")
        await client.say("REQ", "time", "", ReqID="7")
        request = await service.told()
        assert error_in(await client.told()) == ("time", "TimedOut", "7")
        await service.say("RES", "time", "late", ReqID=request.request_id)
        assert error_in(await service.told()) == ("time", "NotYours", request.request_id)
        assert await client.settle() == []


@pytest.mark.req("MID-16")
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("UNSUB a\n\n.\n", ("a", "BadOption", "")),
        ("pub a\nReqID: 3\n\n.\n", ("a", "BadOption", "3")),
        ("", ("*", "UsageError", "")),
        ("PUB", ("*", "UsageError", "")),
        ("PUB a\n\nno end", ("a", "UsageError", "")),
        ("PUB a\n\none\n.\nPUB a\n\ntwo\n.\n", ("a", "UsageError", "")),
        ("PUB a/b\n\n.\n", ("*", "BadSubject", "")),
        ("SUB a.*\n\n.\n", ("*", "BadSubject", "")),
        ("PUB _INBOX.1\n\n.\n", ("*", "", "")),
        ("PUB _WEFT.ask.status\n\n.\n", ("_WEFT.ask.status", "Reserved", "")),
        ("SUB _INBOX.a\n\n.\n", ("*", "NotYours", "")),
        (f"PUB a\n\n{'x' * (1 << 20)}\n.\n", ("a", "BadField", "")),
    ],
)
async def test_what_is_wrong_is_an_error_and_the_connection_stays(
    text: str, error: tuple[str, str, str]
) -> None:
    async with company(1) as (peer,):
        await peer.subscribe("a")
        await peer.send(text)
        assert [error_in(said) for said in await peer.settle()] == [error] * bool(error[1])
        await peer.say("PUB", "a", "still here")
        assert (await peer.told()).body == "still here"


async def test_what_is_wrong_is_counted() -> None:
    settings = Settings()
    async with (
        Gateway(HERE, settings=settings, workers="inline") as gateway,
        let_in(gateway.address) as peer,
    ):
        await peer.send("WHAT a\n\n.\n")
        await peer.settle()
        status = (await gateway.status())["services"]["default"]["status"]
        assert status["refused"] == {"BadOption": 2}


async def test_binary_is_not_middleman() -> None:
    async with company(1) as (peer,):
        await peer.send(written("PUB", "a", "x").encode())
        close = await peer.closed()
        assert (close.code, close.reason) == (1003, "middleman is text")


async def test_a_message_that_never_ends_is_bounded() -> None:
    async with company(1, body_bytes=1000) as (peer,):
        await peer.send("x" * 6096)
        assert error_in(await peer.told())[1] == "UsageError"
        await peer.send("x" * 6097)
        assert (await peer.closed()).code == 1009


async def test_who_says_nothing_but_nonsense_is_ended() -> None:
    async with company(2, control_burst=50, control_per_s=1) as (peer, bystander):
        for _ in range(60):
            await peer.send("nonsense")
        while (error := error_in(await peer.told())) == ("*", "UsageError", ""):
            pass
        assert error == ("*", "ControlFlood", "")
        assert (await peer.closed()).code >= 4500
        assert await bystander.settle() == []


async def test_errors_that_nobody_reads_are_bounded() -> None:
    limits = Limits(outbox_bytes=8192, outbox_age_s=60.0)
    async with hallway(limits) as hall, hall.let_in() as peer:
        peer.socket.transport.pause_reading()
        async with asyncio.timeout(LIMIT_S):
            while not hall.service.ended:
                with suppress(ConnectionClosed):
                    await peer.send("nonsense")
        assert hall.service.ended == {"SlowReader": 1}
        peer.socket.transport.abort()


async def test_a_quiet_peer_is_pinged_and_answers() -> None:
    async with hallway(Limits(ping_s=0.01)) as hall, hall.let_in() as peer:
        [member] = hall.service.peers.values()
        while not member.pinged_ns:
            hall.sweep()
            await asyncio.sleep(0.001)
        await until(lambda: member.heard_ns > member.pinged_ns)
        assert await peer.settle() == []


async def test_a_gateway_that_closes_down_says_so_and_lets_go() -> None:
    gateway = Gateway(HERE, workers="inline")
    await gateway.start()
    try:
        async with let_in(gateway.address) as peer, dialled(gateway.address) as newcomer:
            draining = asyncio.create_task(gateway.drain())
            assert error_in(await peer.told()) == ("*", "Draining", "")
            assert 4000 <= (await peer.closed()).code < 4500
            assert (await newcomer.closed()).reason == ""
            await asyncio.wait_for(draining, LIMIT_S)
    finally:
        await gateway.close()
