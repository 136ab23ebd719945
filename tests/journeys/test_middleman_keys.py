"""Middleman on a gateway that has keys: services enable what clients may, whatever they speak."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.attacks.gateway_process import GatewayProcess
from tests.transports.middleman.raw_peer import dialled, error_in, let_in

import weft
from weft.errors import NotAllowed
from weft.gateway.keys.manage import make_key, new_record
from weft.transports.middleman.protocol import MiddlemanMessage


class Place(NamedTuple):
    """A gateway, and two keys of its service."""

    address: str
    service: str
    client: str


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    data = tmp_path_factory.mktemp("data")
    keys = [
        make_key(data, new_record(role, role, "default")).text for role in ("service", "client")
    ]
    folder = tmp_path_factory.mktemp("gateway")
    with GatewayProcess(folder, {"data": str(data), "drain_s": 2.0}) as gateway:
        yield Place(gateway.address, *keys)
        assert not any(key in gateway.log for key in keys)


@pytest.mark.req("MID-1", "MID-2")
async def test_a_key_lets_in_and_nothing_else_does(place: Place, tmp_path: Path) -> None:
    stranger = make_key(tmp_path, new_record("stranger", "service", "default")).text
    for text in ("MyServerKey", "", stranger, place.service[:-1]):
        async with dialled(place.address) as peer:
            await peer.send(text)
            close = await peer.closed()
            assert (close.code, close.reason) == (1008, "")
    for key in (place.service, place.client):
        async with let_in(place.address, key=key) as peer:
            assert await peer.settle() == []


@pytest.mark.req("MID-3", "MID-12", "MID-13", "MID-17")
async def test_a_client_may_what_services_enable_while_they_are_there(place: Place) -> None:
    async with let_in(place.address, key=place.client) as client:
        async with let_in(place.address, key=place.service) as service:
            await service.subscribe("clock")
            await client.say("REQ", "clock", "now?", ReqID="1")
            assert error_in(await client.told()) == ("clock", "NotAllowed", "1")
            await client.say("EREQ", "clock")
            assert error_in(await client.told()) == ("clock", "NotAllowed", "")
            await service.say("EREQ", "clock")
            assert await service.settle() == []
            await client.say("REQ", "clock", "now?", ReqID="2")
            request = await service.told()
            await service.say("RES", "clock", "noon", ReqID=request.request_id)
            assert await client.told() == MiddlemanMessage("RES", "clock", {"reqid": "2"}, "noon")
            for command in ("PUB", "SUB"):
                await client.say(command, "clock")
                assert error_in(await client.told()) == ("clock", "NotAllowed", "")
        # Once it has left, the next is refused; until then nobody serves it.
        error = "ResponderGone"
        while error != "NotAllowed":
            assert error in {"ResponderGone", "NotKnown"}
            await client.say("REQ", "clock", "now?", ReqID="3")
            _, error, _ = error_in(await client.told())


async def test_a_middleman_service_enables_native_clients(place: Place) -> None:
    async with (
        let_in(place.address, key=place.service) as service,
        weft.connect(place.address, key=place.client) as client,
    ):
        await service.subscribe("up")
        with pytest.raises(NotAllowed):
            await client.publish("up", "early", acknowledge=True)
        await service.say("EPUB", "up")
        assert await service.settle() == []
        await client.publish("up", "hello", acknowledge=True)
        assert await service.told() == MiddlemanMessage("PUB", "up", {}, "hello")


async def test_a_native_service_enables_middleman_clients(place: Place) -> None:
    async with (
        weft.connect(place.address, key=place.service) as service,
        let_in(place.address, key=place.client) as client,
    ):
        await client.say("SUB", "news.london")
        assert error_in(await client.told()) == ("news.london", "NotAllowed", "")
        await service.enable("subscribe", "news.>")
        await client.subscribe("news.london")
        await service.publish("news.london", "hello")
        assert await client.told() == MiddlemanMessage("PUB", "news.london", {}, "hello")
