"""History first, then live, behind the doors for HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.transports.web import Browser, event, line, open_house
from websockets.asyncio.client import connect

import weft
from weft.gateway.config.settings import JournalSettings, Settings
from weft.transports.peer_replay import RECALLS_MAX

COUNT = 400


@asynccontextmanager
async def keeping(folder: Path) -> AsyncIterator[str]:
    """A gateway whose journal has half of the messages, and gets the others meanwhile."""
    journal = JournalSettings(patterns=(">",))
    settings = Settings(listen="127.0.0.1:0", data=str(folder), journal=journal)
    async with (
        weft.Gateway(settings=settings, workers="inline") as gateway,
        weft.connect(str(gateway.address)) as client,
    ):
        for number in range(COUNT // 2):
            await client.publish("a.b", weft.Message(n=number))
        await client.flush()

        async def publish_rest() -> None:
            for number in range(COUNT // 2, COUNT):
                await client.publish("a.b", weft.Message(n=number))
                await asyncio.sleep(0)

        rest = asyncio.create_task(publish_rest())
        yield str(gateway.address)
        await rest


async def test_datagrams_have_their_past_and_then_come_live(tmp_path: Path) -> None:
    async with keeping(tmp_path) as address, connect(f"ws://{address}/default/ws") as socket:
        interest = {"interest": "/a", "subpaths": True, "since": "1h", "ack": 1}
        await socket.send(json.dumps(interest))
        heard: list[int] = []
        while len(heard) < COUNT:
            told = json.loads(await socket.recv())
            if "data" in told:
                heard.append(told["data"]["n"])
        assert heard == list(range(COUNT))


@pytest.mark.parametrize("query", ["", "?new=1"])
async def test_one_past_too_many_is_refused_and_the_others_are_told(
    query: str, tmp_path: Path
) -> None:
    async with keeping(tmp_path) as address, connect(f"ws://{address}/default/ws{query}") as socket:
        interests = [
            {"interest": f"/x/{number}", "since": "1h", "ack": number}
            for number in range(RECALLS_MAX + 1)
        ]
        await socket.send(json.dumps(interests))
        await socket.recv()
        told = [json.loads(await socket.recv()) for _ in interests]
        assert [(each["ack"], each["error"]["name"]) for each in told if "error" in each] == [
            (RECALLS_MAX, "TooMany")
        ]
        assert {each["ok"] for each in told if "ok" in each} == set(range(RECALLS_MAX))


async def test_a_stream_has_its_past_and_then_comes_live(tmp_path: Path) -> None:
    async with keeping(tmp_path) as address:
        browser = Browser(address)
        response = await browser.listen("/default/stream/a/b?since=0")
        heard = [json.loads((await event(response))["data"])["data"]["n"] for _ in range(COUNT)]
        assert heard == list(range(COUNT))
        browser.close()


@pytest.mark.parametrize(("since", "error"), [("soon", "BadOption"), ("0", "NotKnown")])
async def test_a_past_that_cannot_be_had_is_refused_before_the_stream_begins(
    since: str, error: str
) -> None:
    async with open_house() as house:
        answer = await house.browser.ask("GET", f"/default/stream/a?since={since}")
        assert answer.error == error


async def test_a_tunnel_has_its_past_and_then_comes_live(tmp_path: Path) -> None:
    async with keeping(tmp_path) as address:
        listening, saying = Browser(address), Browser(address)
        response = await listening.listen("/default/tunnel?new=1&format=ndjson")
        tunnel = json.loads(await line(response))["tunnel"]
        interest = json.dumps({"tunnel": tunnel, "interest": "/a/b", "since": "1h"}).encode()
        assert (await saying.ask("POST", "/default/events", interest)).status == 202
        heard: list[int] = []
        while len(heard) < COUNT:
            told = json.loads(await line(response))
            if "data" in told:
                heard.append(told["data"]["n"])
        assert heard == list(range(COUNT))
        listening.close()
        saying.close()
