"""Who may do what in middleman: the keys of services and of clients."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from tests.broker.locksmith import key_of, record
from tests.transports.hallway import Hallway, hallway
from tests.transports.loops import until
from tests.transports.middleman.raw_peer import MiddlemanPeer, error_in

from weft.broker.auth.keys import KeyRecord
from weft.transports.middleman.protocol import MiddlemanMessage
from weft.transports.middleman.websocket import NOT_LET_IN

SERVICE, CLIENT = record("service"), record("client", "client")
COMMANDS = {"EPUB": "PUB", "ESUB": "SUB", "EREQ": "REQ"}


@asynccontextmanager
async def locked(*records: KeyRecord) -> AsyncIterator[Hallway]:
    async with hallway() as hall:
        hall.lock(*records)
        yield hall


@asynccontextmanager
async def company(*names: str) -> AsyncIterator[list[MiddlemanPeer]]:
    """Peers with these keys."""
    async with AsyncExitStack() as stack:
        hall = await stack.enter_async_context(locked(SERVICE, CLIENT))
        entering = [hall.let_in(key_of(name)) for name in names]
        yield [await stack.enter_async_context(each) for each in entering]


async def refused(client: MiddlemanPeer, command: str) -> bool:
    """Say if a client is refused what it tries; nothing else may come of it."""
    await client.say(command, "a", "tried", ReqID="7")
    errors = [error_in(said) for said in await client.settle()]
    assert errors in ([], [("a", "NotAllowed", "7" if command == "REQ" else "")])
    return bool(errors)


@pytest.mark.req("MID-1", "MID-2")
@pytest.mark.parametrize("name", ["service", "client"])
async def test_a_key_that_is_known_lets_in(name: str) -> None:
    async with locked(SERVICE, CLIENT) as hall, hall.dialled() as peer:
        await peer.send(key_of(name))
        assert await peer.recv() == "MM OK"
        assert await peer.settle() == []


@pytest.mark.req("MID-1", "MID-2")
@pytest.mark.parametrize(
    "text",
    [
        "MyServerKey",
        "",
        key_of("stranger"),
        key_of("service")[:-1],
        f" {key_of('service')}",
        f"{key_of('service')}\nPUB a\n\n.\n",
        f"PUB a\nkey:{key_of('service')}\n\n.\n",
    ],
)
async def test_any_other_is_closed_without_a_word(text: str) -> None:
    async with locked(SERVICE, CLIENT) as hall:
        async with hall.dialled() as peer:
            await peer.send(text)
            await peer.send("PUB a\n\n.\n")
            close = await peer.closed()
            assert (close.code, close.reason) == (NOT_LET_IN, "")
        await until(lambda: not hall.service.peers)
        assert hall.service.total.messages == 0


async def test_a_key_that_is_revoked_ends_the_connection() -> None:
    async with locked(SERVICE, CLIENT) as hall, hall.let_in(key_of("client")) as peer:
        hall.lock(SERVICE)
        assert error_in(await peer.told()) == ("*", "BadKey", "")
        assert (await peer.closed()).code >= 4500


@pytest.mark.req("MID-3")
async def test_a_service_may_do_everything() -> None:
    async with company("service", "service") as (one, two):
        await one.subscribe("a")
        await two.say("PUB", "a", "x")
        assert await one.told() == MiddlemanMessage("PUB", "a", {}, "x")
        await two.say("REQ", "a", "y", ReqID="1")
        request = await one.told()
        await one.say("RES", "a", "z", ReqID=request.request_id)
        assert await two.told() == MiddlemanMessage("RES", "a", {"reqid": "1"}, "z")
        for command in COMMANDS:
            await one.say(command, "a")
        assert await one.settle() == await two.settle() == []


@pytest.mark.req("MID-3", "MID-13")
@pytest.mark.parametrize("command", ["PUB", "SUB", "REQ"])
async def test_a_client_may_do_nothing_that_was_not_enabled(command: str) -> None:
    async with company("service", "client") as (service, client):
        await service.subscribe("a")
        assert await refused(client, command)
        await service.say("PUB", "a", "not for clients")
        assert await service.told() == MiddlemanMessage("PUB", "a", {}, "not for clients")
        assert await service.settle() == await client.settle() == []


@pytest.mark.req("MID-12")
@pytest.mark.parametrize("enabling", COMMANDS)
async def test_what_is_enabled_is_one_right_for_one_target(enabling: str) -> None:
    async with company("service", "client") as (service, client):
        await service.subscribe("a")
        await service.say(enabling, "a")
        await service.say(enabling, "b.c")
        assert await service.settle() == []
        allowed = {command for command in COMMANDS.values() if not await refused(client, command)}
        assert allowed == {COMMANDS[enabling]}
        for target in ("aa", "a.b", "b", "b.c.d", "A"):
            await client.say(COMMANDS[enabling], target, ReqID="8")
            assert error_in(await client.told())[:2] == (target, "NotAllowed")


@pytest.mark.req("MID-12")
async def test_the_three_rights_are_apart_and_add_up() -> None:
    async with company("service", "client") as (service, client):
        await service.subscribe("a")
        for enabling in COMMANDS:
            await service.say(enabling, "a")
        await service.settle()
        await client.subscribe("a")
        await client.say("PUB", "a", "x")
        assert await client.told() == await service.told() == MiddlemanMessage("PUB", "a", {}, "x")
        await client.say("REQ", "a", "y", ReqID="1")
        request = await service.told()
        await service.say("RES", "a", "z", ReqID=request.request_id)
        assert await client.told() == MiddlemanMessage("RES", "a", {"reqid": "1"}, "z")


@pytest.mark.req("MID-13")
@pytest.mark.parametrize("enabling", COMMANDS)
async def test_a_client_enables_nothing(enabling: str) -> None:
    async with company("client", "client", "service") as (client, other, service):
        await service.subscribe("a")
        await client.say(enabling, "a")
        assert [error_in(said) for said in await client.settle()] == [("a", "NotAllowed", "")]
        assert await refused(client, COMMANDS[enabling])
        assert await refused(other, COMMANDS[enabling])


async def test_nobody_enables_what_belongs_to_the_system() -> None:
    async with company("service") as (service,):
        await service.say("ESUB", "_WEFT.event.connected")
        [said] = await service.settle()
        assert error_in(said) == ("_WEFT.event.connected", "Reserved", "")


@pytest.mark.req("MID-6", "MID-7")
async def test_what_is_published_reaches_services_and_clients() -> None:
    async with company("service", "service", "client") as (one, two, client):
        await one.say("ESUB", "a")
        await one.settle()
        await two.subscribe("a")
        await client.subscribe("a")
        await one.say("PUB", "a", "x")
        assert await two.told() == await client.told() == MiddlemanMessage("PUB", "a", {}, "x")


@pytest.mark.req("MID-9")
async def test_a_client_that_subscribed_is_never_asked() -> None:
    async with company("service", "client", "client") as (service, client, asker):
        for enabling in ("ESUB", "EREQ"):
            await service.say(enabling, "a")
        await service.settle()
        await client.subscribe("a")
        for number in range(3):
            await asker.say("REQ", "a", "", ReqID=str(number))
            assert error_in(await asker.told()) == ("a", "NotKnown", str(number))
        await service.subscribe("a")
        for number in range(6):
            await asker.say("REQ", "a", str(number), ReqID=str(number))
            assert (await service.told()).body == str(number)
        assert await client.settle() == []


@pytest.mark.req("MID-11")
async def test_a_client_answers_nothing() -> None:
    async with company("service", "client") as (service, client):
        await service.subscribe("a")
        await service.say("EREQ", "a")
        await service.settle()
        await client.say("REQ", "a", "", ReqID="1")
        stand_in = (await service.told()).request_id
        await client.say("RES", "a", "forged", ReqID=stand_in)
        assert error_in(await client.told()) == ("a", "NotYours", stand_in)
        await service.say("RES", "a", "true", ReqID=stand_in)
        assert (await client.told()).body == "true"


@pytest.mark.req("MID-17")
@pytest.mark.parametrize("enabling", COMMANDS)
async def test_a_right_ends_with_the_last_service_that_enabled_it(enabling: str) -> None:
    async with locked(SERVICE, CLIENT) as hall, AsyncExitStack() as stack:
        client = await stack.enter_async_context(hall.let_in(key_of("client")))
        staying = await stack.enter_async_context(hall.let_in(key_of("service")))
        await staying.subscribe("a")
        command = COMMANDS[enabling]
        async with hall.let_in(key_of("service")) as last:
            async with hall.let_in(key_of("service")) as first:
                for service in (last, first):
                    await service.say(enabling, "a")
                    await service.settle()
                assert not await refused(client, command)
                await staying.settle()
            await until(lambda: len(hall.service.peers) == 3)
            client_again = await stack.enter_async_context(hall.let_in(key_of("client")))
            assert not await refused(client_again, command)
        await until(lambda: len(hall.service.peers) == 3)
        if command == "SUB":
            # What it heard until now it hears no more, and is told so.
            assert error_in(await client.told()) == ("a", "NotAllowed", "")
            await staying.say("PUB", "a", "not for clients")
            assert await client.settle() == []
        elif command == "REQ":
            # It still waits for the first, which nobody has answered.
            await staying.settle()
        await client.say(command, "a", "", ReqID="other")
        assert error_in((await client.settle())[-1])[:2] == ("a", "NotAllowed")
