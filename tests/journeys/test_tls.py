"""TLS: the same conversation, encrypted, with a gateway that proves who it is."""

import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journeys.clients import Client, Connect, taken, texts
from tests.journeys.lane_people import Reader, Writer, eventually, state_of
from tests.journeys.raw import dialled, greeting
from tests.journeys.running import RunningGateway, running

import weft
from weft.errors import Unreachable, WeftError
from weft.wire.frames import BODY_LIMIT_BYTES


@pytest.fixture(scope="module")
def encrypted(
    certificates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGateway]:
    """A gateway that speaks TLS only."""
    cert, key = certificates / "first.pem", certificates / "first.key"
    settings = f'name = "vault"\n[tls]\ncert = "{cert}"\nkey = "{key}"'
    with running(tmp_path_factory.mktemp("encrypted"), settings) as gateway:
        yield gateway


@pytest.fixture
def trust(certificates: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificates / "first.pem")


@pytest.fixture
def connect(face: str, encrypted: RunningGateway) -> Connect:
    return Connect(face, encrypted.address)


async def test_a_conversation_goes_over_tls(
    connect: Connect, trust: ssl.SSLContext, subject: str
) -> None:
    async with connect(tls=trust) as london, connect(tls=trust) as paris:
        heard = await paris.subscribe(f"{subject}.>")
        await paris.answer(f"{subject}ask", lambda asked: f"{asked.text}!")
        for number in range(200):
            await london.publish(f"{subject}.a", str(number))
        assert texts(await taken(heard, 200)) == [str(number) for number in range(200)]
        assert (await london.request(f"{subject}ask", "hello")).text == "hello!"


async def test_large_bodies_go_over_tls(
    connect: Connect, trust: ssl.SSLContext, subject: str
) -> None:
    body = os.urandom(BODY_LIMIT_BYTES)

    async def echoed(client: Client) -> bytes:
        return (await client.request(subject, body)).payload

    async with connect(tls=trust) as london, connect(tls=trust) as paris:
        await paris.answer(subject, lambda asked: asked.payload)
        for _ in range(3):
            assert await echoed(london) == body


@pytest.mark.req("HUB-21")
async def test_clients_that_talk_tls_have_lanes_as_others_do(
    encrypted: RunningGateway, trust: ssl.SSLContext, subject: str
) -> None:
    async with (
        weft.connect(encrypted.address, tls=trust) as paris,
        weft.connect(encrypted.address, tls=trust) as london,
    ):
        reader, writer = Reader(paris, subject), Writer(london, subject)
        await reader.subscription.ready()
        await writer.say(500)
        await london.direct(subject)
        await writer.say(500)
        await eventually(lambda: len(reader.heard) == 1000)
        assert reader.heard == [(number >= 500, number) for number in range(1000)]
        assert await state_of(london, subject) == ["direct: requested by its publisher"]


async def test_a_gateway_that_is_not_trusted_is_not_spoken_to(connect: Connect) -> None:
    with pytest.raises(Unreachable, match="certificate"):
        await connect.open()


async def test_a_certificate_for_another_name_is_not_trusted(
    connect: Connect, encrypted: RunningGateway, trust: ssl.SSLContext
) -> None:
    other_name = encrypted.address.replace("127.0.0.1", "127.1")
    with pytest.raises(Unreachable):
        await connect.open(other_name, tls=trust)


async def test_whoever_speaks_in_the_clear_is_turned_away(
    connect: Connect, encrypted: RunningGateway
) -> None:
    clear = encrypted.address.removeprefix("tls://")
    with pytest.raises(WeftError):
        await connect.open(clear)
    async with dialled(clear) as raw:
        await raw.send(greeting())
        await raw.to_the_end()


async def test_tls_on_a_port_without_it_is_turned_away(
    face: str, gateway: RunningGateway, trust: ssl.SSLContext
) -> None:
    with pytest.raises(Unreachable):
        await Connect(face, f"tls://{gateway.address}").open(tls=trust)


async def test_a_client_that_leaves_is_gone_for_the_others(
    connect: Connect, trust: ssl.SSLContext, subject: str
) -> None:
    async with connect(tls=trust) as stays:
        async with connect(tls=trust, name=f"{subject}.leaves") as leaves:
            await leaves.subscribe(subject)
            events = await stays.subscribe("_WEFT.event.disconnected")
        while (await events.next())["name"] != f"{subject}.leaves":
            pass
        found = await stays.request("_WEFT.ask.subscribers", weft.Message(subject=subject))
        assert found["subscribers"] == []
