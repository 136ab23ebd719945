"""Pages of gateways, and of what is none."""

import asyncio
from dataclasses import replace

import pytest
from tests.client.servers import answered, http_server

from weft.client.connection.http_get import (
    PAGE_MAX_BYTES,
    HttpResponse,
    fetch,
    problem_in,
    round_trip_s,
)
from weft.errors import Unreachable
from weft.gateway.gateway import Gateway
from weft.wire.address import Address, addresses_from


async def test_a_page_of_a_real_gateway_is_read_whole() -> None:
    async with Gateway("127.0.0.1:0", workers="inline") as gateway:
        [address] = addresses_from(gateway.address)
        assert await fetch(address, "/healthz", "", None) == HttpResponse(200, b"ok\n")
        assert (await fetch(address, "/nothing", "", None)).status == 404
        assert await round_trip_s(address, None) > 0


async def test_the_key_is_shown_and_the_host_only_to_what_may_be_in_between() -> None:
    async with http_server(lambda _: answered()) as server:
        await fetch(server.address, "/a?b=c", "secret", None)
        await fetch(replace(server.address, is_web=True), "/", "", None)
    first, second = server.heads
    assert first.startswith("GET /a?b=c HTTP/1.0\r\n")
    assert "Authorization: Bearer secret\r\n" in first
    assert "Host" not in first
    assert f"Host: 127.0.0.1:{server.address.port}\r\n" in second
    assert "Authorization" not in second


async def test_a_page_is_read_up_to_its_limit() -> None:
    body = "x" * (PAGE_MAX_BYTES + 1000)
    async with http_server(lambda _: answered(body)) as server:
        assert len((await fetch(server.address, "/", "", None)).body) == PAGE_MAX_BYTES


@pytest.mark.parametrize(
    "answer", [b"", b"\x00" * 64, b"hello\r\n", b"HTTP/1.1 abc\r\n\r\n", b"x" * 100_000]
)
async def test_what_speaks_no_http_is_no_gateway(answer: bytes) -> None:
    async with http_server(lambda _: answer) as server:
        for asking in (fetch(server.address, "/", "", None), round_trip_s(server.address, None)):
            with pytest.raises(Unreachable):
                await asking


async def test_what_is_not_well_has_no_round_trip() -> None:
    async with http_server(lambda _: answered("no", "421 Misdirected")) as server:
        with pytest.raises(Unreachable, match="421"):
            await round_trip_s(server.address, None)


async def test_nobody_is_unreachable_by_either_way() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    for is_tls in (False, True):
        with pytest.raises(Unreachable):
            await fetch(Address("127.0.0.1", port, is_tls), "/", "", None)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            b'{"error":{"number":4006,"name":"BadKey","text":"a key is needed"}}\n',
            "a key is needed",
        ),
        (b"a key is needed\n", "a key is needed"),
        (b"", ""),
        (b'{"error":{"text":7}}', '{"error":{"text":7}}'),
        (b'{"error":null}', '{"error":null}'),
        (b"[]", "[]"),
        (b"7", "7"),
        (b"\xff", "\ufffd"),
        (b"[" * 2000, "[" * 1024),
    ],
)
def test_a_problem_is_the_text_of_an_error_or_the_whole_answer(body: bytes, said: str) -> None:
    assert problem_in(body) == said
