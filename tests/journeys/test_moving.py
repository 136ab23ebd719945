"""Moving: a gateway that closes down sends what it owes, and its clients go elsewhere."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journeys.clients import Connect, in_thread, rest, taken, texts
from tests.journeys.raw import bodies, dialled, greeted, message, subscribe
from tests.journeys.running import RunningGateway, running

from weft.client.status import What
from weft.errors import Draining, Unreachable
from weft.wire.frames import Kind, encode


@pytest.fixture
def closing(tmp_path: Path) -> Iterator[RunningGateway]:
    """A gateway that is going to be told to end."""
    with running(tmp_path, 'name = "paris"') as gateway:
        yield gateway


async def test_a_client_moves_from_a_gateway_that_drains_to_the_next_address(
    connect: Connect, closing: RunningGateway, gateway: RunningGateway, subject: str
) -> None:
    async with connect([closing.address, gateway.address]) as moves, connect() as stays:
        heard = await moves.subscribe(subject)
        assert moves.gateway == "paris"
        closing.terminate()
        await moves.statuses.until(What.CONNECTED, 2)
        assert moves.gateway == "london"
        # It does not try again where it was just sent away.
        assert moves.statuses.of(What.FAILED) == []
        assert isinstance(moves.statuses.of(What.DISCONNECTED)[0].error, Draining)
        await stays.publish(subject, "welcome")
        assert texts(await taken(heard, 1)) == ["welcome"]
        assert await in_thread(closing.wait) == 0


async def test_a_request_that_waits_when_its_gateway_drains_is_told_so_or_asked_again(
    connect: Connect, closing: RunningGateway, gateway: RunningGateway, subject: str
) -> None:
    async with connect([closing.address, gateway.address]) as client:
        requests = await client.subscribe(subject)
        fails = asyncio.create_task(client.request(subject, "once"))
        again = asyncio.create_task(client.request(subject, "again", resend=True))
        assert sorted(texts(await taken(requests, 2))) == ["again", "once"]
        closing.terminate()
        with pytest.raises(Draining):
            await fails
        second = await requests.next()
        await client.respond(second, "answered elsewhere")
        assert (await again).text == "answered elsewhere"
        assert await rest(client, requests) == []


async def test_what_is_owed_is_sent_before_a_gateway_ends(
    closing: RunningGateway, subject: str
) -> None:
    sent = [b"%d " % number + bytes(10_000) for number in range(500)]
    async with dialled(closing.address, receive_buffer=16_384) as reader:
        await reader.greet()
        await reader.say(subscribe(subject))
        async with greeted(closing.address) as publisher:
            await publisher.say(*(message(subject, body) for body in sent))
            closing.terminate()
            heard = [await reader.next() for _ in sent]
            assert bodies(heard) == sent
            await reader.next(Kind.GOODBYE)
            await publisher.next(Kind.GOODBYE)
            for raw in (reader, publisher):
                await raw.send(encode(Kind.GOODBYE))
                assert await raw.to_the_end() == []
        assert await in_thread(closing.wait) == 0


async def test_a_gateway_that_drains_lets_nobody_in(
    face: str, closing: RunningGateway, subject: str
) -> None:
    async with greeted(closing.address) as raw:
        await raw.say(subscribe(subject))
        closing.terminate()
        await raw.next(Kind.GOODBYE)
        with pytest.raises((Unreachable, Draining)):
            await Connect(face, closing.address).open()
        # Those who are still there are served until they go.
        assert bodies(await raw.say(message(subject, b"still here"))) == [b"still here"]
