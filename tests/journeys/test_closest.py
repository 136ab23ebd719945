"""Clients find the closest of several gateways, and never depend on being told where it is."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.meshes import LIMIT_S
from tests.journeys.delaying import FarGateway, far_mesh, forget, taken

import weft
from weft.client.connection import closest

FAR = 0.08
# The one that is near is neither in the region that is asked for, nor the one that is asked.
MESH = {
    "ann": {"delay_s": FAR, "region": "eu"},
    "bob": {"delay_s": 0.0, "region": "us"},
    "cat": {"delay_s": FAR, "region": "us"},
}

Trio = list[FarGateway]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Three gateways for every journey that leaves them whole."""
    with far_mesh(tmp_path_factory.mktemp("far"), **MESH) as made:
        yield made


@pytest.fixture
def trio(shared: Trio) -> Trio:
    forget(*shared)
    return shared


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as taken_port:
        taken_port.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken_port.getsockname()[1]}"


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not is_so():
            await asyncio.sleep(0.02)


@pytest.mark.req("RLY-16", "RLY-17")
async def test_the_closest_by_measure_is_taken_although_another_has_the_region(trio: Trio) -> None:
    async with weft.connect(trio[0].address, closest=True, region="eu") as client:
        assert client.gateway == "bob"
        assert client.why.startswith("the closest of 3 that answered")
        await client.flush(LIMIT_S)
    assert taken(trio) == {"ann": 0, "bob": 1, "cat": 0}
    assert "/closest?service=default&limit=3&region=eu" in trio[0].proxy.targets


@pytest.mark.req("RLY-16", "RLY-17")
def test_the_blocking_client_takes_the_closest_too(trio: Trio) -> None:
    with weft.Connection(trio[2].address, closest=trio[0].address) as client:
        assert client.gateway == "bob"
        assert client.address == f"tcp://{trio[1].address}"
    assert taken(trio) == {"ann": 0, "bob": 1, "cat": 0}


@pytest.mark.req("RLY-17")
async def test_the_region_decides_who_is_measured_where_not_all_are(
    trio: Trio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closest, "MEASURED_MAX", 1)
    async with weft.connect(trio[1].address, closest=True, region="eu") as client:
        assert client.gateway == "ann"
    assert [each.proxy.targets.count("/healthz") for each in trio] == [closest.TRIES, 0, 0]
    assert taken(trio) == {"ann": 1, "bob": 0, "cat": 0}


@pytest.mark.req("RLY-16")
async def test_with_the_master_down_the_given_gateway_is_used(trio: Trio, nobody: str) -> None:
    async with weft.connect(trio[2].address, closest=nobody, region="eu") as client:
        assert client.gateway == "cat"
        assert client.why.startswith("given, as ")
        assert nobody in client.why
    assert taken(trio) == {"ann": 0, "bob": 0, "cat": 1}


def named(gateway: FarGateway) -> list[str]:
    return gateway.closest("region=us")


@pytest.mark.req("RLY-17")
async def test_a_gateway_with_less_load_is_named_first(trio: Trio) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(5):
            await stack.enter_async_context(weft.connect(trio[2].running.address))
        await until(lambda: all(named(each) == ["bob", "cat", "ann"] for each in trio))
        for _ in range(20):
            await stack.enter_async_context(weft.connect(trio[1].running.address))
        await until(lambda: all(named(each) == ["cat", "bob", "ann"] for each in trio))


async def moved_from_bob(trio: Trio, client: weft.AsyncConnection) -> None:
    """Wait until a client of bob is at another gateway, and is served there."""
    await until(lambda: client.is_connected and client.gateway != "bob")
    await client.flush(LIMIT_S)
    assert taken(trio)["bob"] == 1
    assert taken(trio)["ann"] + taken(trio)["cat"] == 1


@pytest.mark.req("RLY-16")
async def test_a_client_whose_gateway_dies_is_at_the_next_best(tmp_path: Path) -> None:
    with far_mesh(tmp_path, **MESH) as trio:
        forget(*trio)
        async with weft.connect(trio[0].address, closest=True) as client:
            assert client.gateway == "bob"
            await asyncio.to_thread(trio[1].kill)
            await moved_from_bob(trio, client)


@pytest.mark.req("RLY-16")
async def test_a_client_whose_gateway_drains_goes_where_it_is_sent(tmp_path: Path) -> None:
    with far_mesh(tmp_path, **MESH) as trio:
        forget(*trio)
        options: dict[str, Any] = {"closest": True, "region": "eu"}
        async with weft.connect(trio[0].address, **options) as client:
            assert client.gateway == "bob"
            trio[1].running.terminate()
            await moved_from_bob(trio, client)
            assert client.why.endswith(f"advised by tcp://{trio[1].address}")
            # Those who ask meanwhile are not sent there either.
            await until(lambda: "bob" not in trio[0].closest())
