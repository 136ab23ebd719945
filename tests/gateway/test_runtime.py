import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.broker.locksmith import record

from weft.broker.limits import Limits
from weft.errors import BadOption, UsageError
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import Settings, Tls
from weft.gateway.keys.key_file import change_keys
from weft.gateway.runtime import GatewayRuntime
from weft.wire.frames import Kind, encode

SETTINGS = Settings(name="london", listen="127.0.0.1:0")


@asynccontextmanager
async def running(settings: Settings = SETTINGS) -> AsyncIterator[GatewayRuntime]:
    node = GatewayRuntime(settings, is_inline=True)
    try:
        await node.start()
        yield node
    finally:
        await node.close()


async def fetched(node: GatewayRuntime, path: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection(*node.address)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), body.decode()


async def test_pages_and_services_share_one_port() -> None:
    async with running() as node:
        reader, writer = await asyncio.open_connection(*node.address)
        writer.write(encode(Kind.CONNECT, b"weather"))
        assert (await reader.readexactly(5))[4] == Kind.WELCOME
        status, body = await fetched(node, "/status")
        assert status == 200
        report = json.loads(body)
        assert report["gateway"] == "london"
        assert report["address"] == str(node.address)
        assert report["state"] == "ready"
        assert report["connections"] == 1
        assert report["front"]["accepted"] == 2
        assert report["services"]["weather"]["status"]["connections"] == 1
        assert await fetched(node, "/readyz") == (200, "ready\n")
        writer.close()
        await writer.wait_closed()


async def test_an_address_in_use_leaves_nothing_behind() -> None:
    async with running() as node:
        settings = msgspec.structs.replace(SETTINGS, listen=str(node.address))
        with pytest.raises(UsageError, match="Address already in use"):
            GatewayRuntime(settings, is_inline=True)


async def test_a_certificate_that_cannot_be_used_is_refused_at_the_start(tls: Tls) -> None:
    settings = msgspec.structs.replace(SETTINGS, tls=Tls(cert=tls.key, key=tls.key))
    with pytest.raises(BadOption, match=r"tls\.cert"):
        GatewayRuntime(settings, is_inline=True)


async def test_what_can_change_does_and_the_rest_is_named(tls: Tls) -> None:
    async with running() as node:
        address = node.address
        limits = Limits(body_bytes=1000)
        changed = Settings(name="paris", listen="127.0.0.1:1", data="x", tls=tls, limits=limits)
        changed = msgspec.structs.replace(changed, connections=7, pending=3)
        assert node.change(changed) == ["name", "listen", "data", "tls", "limits.body_bytes"]
        report = await node.report()
        assert report.gateway == "london"
        assert node.address == address
        assert report.connections_max == 7
        assert report.front.pending_max == 3


async def test_new_settings_hold_for_who_comes_next() -> None:
    async with running() as node:
        limits = Limits(greeting_s=0.01)
        settings = msgspec.structs.replace(SETTINGS, services=("orders",), limits=limits)
        assert node.change(settings) == []
        silent_reader, silent_writer = await asyncio.open_connection(*node.address)
        assert (await silent_reader.readexactly(5))[4] == Kind.ERROR
        reader, writer = await asyncio.open_connection(*node.address)
        writer.write(encode(Kind.CONNECT, b"weather"))
        assert b"NoSuchService" in await reader.read()
        assert set((await node.report()).services) == {"orders"}
        for each in (silent_writer, writer):
            each.close()
            await each.wait_closed()


async def test_a_bad_certificate_changes_nothing_at_all(tls: Tls, other_tls: Tls) -> None:
    settings = msgspec.structs.replace(SETTINGS, tls=tls)
    async with running(settings) as node:
        before = (await node.report()).connections_max
        bad = Tls(cert=tls.cert, key=other_tls.key)
        with pytest.raises(BadOption):
            node.change(msgspec.structs.replace(settings, tls=bad, connections=1))
        assert (await node.report()).connections_max == before
        assert node.change(msgspec.structs.replace(settings, tls=other_tls)) == []


async def test_the_port_is_closed_while_it_drains() -> None:
    async with running() as node:
        await node.drain(30.0)
        assert node.unready == "draining"
        assert (await node.report()).state == "draining"
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*node.address)
        await node.drain(30.0)


@pytest.mark.req("RLY-16")
async def test_the_gateway_that_is_asked_is_a_candidate_itself() -> None:
    settings = msgspec.structs.replace(SETTINGS, mesh=MeshSettings(region="eu"))
    async with running(settings) as node:
        status, body = await fetched(node, "/closest?service=weather&region=eu")
        assert status == 200
        [own] = json.loads(body)["candidates"]
        assert (own["name"], own["address"]) == ("london", str(node.address))
        assert (own["region"], own["state"], own["service"]) == ("eu", "here", "weather")
        assert await fetched(node, "/nodes") == (200, '{"gateway":"london","services":{}}\n')


async def test_whoever_listens_everywhere_is_where_it_was_asked(tmp_path: Path) -> None:
    change_keys(tmp_path, lambda _: (record("one"),))
    everywhere = msgspec.structs.replace(SETTINGS, listen="0.0.0.0:0", data=str(tmp_path))
    async with running(everywhere) as node:
        [own] = await node.nodes("weather")
        assert own.address == ""


async def test_a_gateway_that_speaks_tls_says_so(tls: Tls) -> None:
    async with running(msgspec.structs.replace(SETTINGS, tls=tls)) as node:
        [own] = await node.nodes("weather")
        assert own.address == f"tls://{node.address}"


async def test_services_that_are_not_run_have_no_candidates() -> None:
    async with running(msgspec.structs.replace(SETTINGS, services=("weather",))) as node:
        status, text = await fetched(node, "/closest?service=orders")
        assert status == 404
        assert "orders" in text
        status, text = await fetched(node, "/closest?service=weather&limit=0")
        assert status == 400
        assert json.loads(text)["error"]["text"] == "limit '0' is not in 1 … 100"
        status, body = await fetched(node, "/nodes")
        assert [each["name"] for each in json.loads(body)["services"]["weather"]] == ["london"]
