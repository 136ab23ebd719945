"""Clients of event streams and of plain HTTP that others wrote: EventSource, httpx-sse and curl."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import weft

SOURCE = Path(__file__).parent / "eventsource"
# Where `make interop` installs it.
PLACE = Path(__file__).resolve().parents[2] / "build" / "interop" / "eventsource"
WAIT_S = 20

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (PLACE / "node_modules" / "eventsource").is_dir(),
    reason="make interop installs the clients",
)
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@asynccontextmanager
async def place() -> AsyncIterator[tuple[str, Any]]:
    """A gateway's URL, and a native client of it."""
    async with (
        weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway,
        weft.connect(str(gateway.address)) as client,
    ):
        yield f"http://{gateway.address}/default", client


class Program:
    """A program of others, and the lines that it prints."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def line(self) -> str:
        assert self._process.stdout is not None
        text = await asyncio.wait_for(self._process.stdout.readline(), WAIT_S)
        assert text, "it ended"
        return text.decode().rstrip("\n")

    async def told(self) -> Any:
        return json.loads(await self.line())

    async def output(self) -> str:
        said, _ = await asyncio.wait_for(self._process.communicate(), WAIT_S)
        return said.decode()


@asynccontextmanager
async def program(*command: str) -> AsyncIterator[Program]:
    """Run a program until its test is over."""
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def event_source(url: str) -> Any:
    """A stock EventSource that listens to a URL."""
    return program("node", shutil.copy(str(SOURCE / "client.mjs"), str(PLACE)), url)


@needs_node
async def test_an_event_source_hears_a_stream() -> None:
    async with place() as (url, client), event_source(f"{url}/stream/a?subpaths=1") as source:
        assert await source.told() == {"type": "opened"}
        await client.publish("a.b", weft.Message(text="line\n\nid: 7"))
        told = await source.told()
        assert told["data"]["data"] == {"text": "line\n\nid: 7"}
        assert (told["type"], told["id"]) == ("message", told["data"]["id"])


@needs_node
@pytest.mark.req("TUN-21")
async def test_an_event_source_comes_back_to_its_tunnel_with_its_last_event() -> None:
    httpx = pytest.importorskip("httpx")
    async with place() as (url, client), httpx.AsyncClient() as http:
        async with event_source(f"{url}/tunnel?new=1&format=sse") as first:
            await first.told()
            tunnel = (await first.told())["data"]["tunnel"]
            wish = {"tunnel": tunnel, "interest": "/a"}
            assert (await http.post(f"{url}/events", json=wish)).status_code == 202
            await client.publish("a", weft.Message(n=1))
            assert (await first.told())["data"]["data"] == {"n": 1}
        await client.publish("a", weft.Message(n=2))
        async with event_source(f"{url}/tunnel?tunnel={tunnel}&format=sse") as again:
            heard: list[int] = []
            while 2 not in heard:
                told = await again.told()
                if told["type"] == "message" and "data" in told["data"]:
                    heard.append(told["data"]["data"]["n"])
            assert heard in ([1, 2], [2])


async def test_httpx_sse_hears_a_stream() -> None:
    httpx = pytest.importorskip("httpx")
    connect_sse = pytest.importorskip("httpx_sse").aconnect_sse
    async with (
        asyncio.timeout(WAIT_S),
        place() as (url, client),
        httpx.AsyncClient() as http,
        connect_sse(http, "GET", f"{url}/stream/a") as source,
    ):
        await client.publish("a", "first")
        await client.publish("a", "sécond\n")
        events = source.aiter_sse()
        heard = [await anext(events) for _ in range(2)]
        assert [each.json()["data"] for each in heard] == ["first", "sécond\n"]
        assert [each.id for each in heard] == [each.json()["id"] for each in heard]


@needs_curl
async def test_curl_publishes_asks_and_listens() -> None:
    async with place() as (url, client):
        served = client.subscribe("quotes.get")
        await served.ready()
        async with program("curl", "-sN", f"{url}/stream/a") as listening:
            assert await listening.line() == "retry: 2000"
            async with program("curl", "-s", "-d", '{"x": 1}', f"{url}/publish/a") as publishing:
                identity = json.loads(await publishing.output())["id"]
            while (line := await listening.line()) != f"id: {identity}":
                assert not line.startswith("data"), line
        async with program("curl", "-s", "-d", "VOD", f"{url}/request/quotes/get") as asking:
            request = await asyncio.wait_for(anext(served), WAIT_S)
            await request.respond(weft.Message(price=3))
            assert json.loads(await asking.output()) == {"price": 3}


@needs_curl
@pytest.mark.req("TUN-19")
async def test_curl_opens_a_tunnel_and_says_what_is_to_come_down_it() -> None:
    async with (
        place() as (url, _),
        program("curl", "-sN", f"{url}/tunnel?new=1&format=ndjson") as tunnel,
    ):
        events = f"{url}/events?tunnel={(await tunnel.told())['tunnel']}"
        said = '[{"interest": "/a"}, {"path": "/a", "data": "hello"}]'
        async with program("curl", "-s", "-d", said, events) as saying:
            assert json.loads(await saying.output()) == {"ok": 2}
        told: dict[str, Any] = {}
        while told.get("path") != "/a":
            told = await tunnel.told()
        assert told["data"] == "hello"
