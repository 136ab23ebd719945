"""Middleman meets everyone else: native clients, browsers, and itself, in the clear and by TLS."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.clients import Connect
from tests.journeys.running import RunningGateway, running
from tests.transports.middleman.raw_peer import LIMIT_S, dialled, error_in, let_in
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial

import weft
from weft.transports.middleman.protocol import MiddlemanMessage

PAGE = Path(__file__).parents[2] / "docs" / "doors.md"
BODIES = ["", ".", "..", ".a", "a\n.\nb\n", "no end", "Grüße\r\n"]


@pytest.fixture(params=["plain", "tls"])
def place(
    request: pytest.FixtureRequest,
    gateway: RunningGateway,
    certificates: Path,
    tmp_path: Path,
) -> Any:
    """A gateway and what trusts it."""
    if request.param == "plain":
        yield gateway.address, None
        return
    cert, key = certificates / "first.pem", certificates / "first.key"
    with running(tmp_path, f'[tls]\ncert = "{cert}"\nkey = "{key}"') as encrypted:
        yield encrypted.address, ssl.create_default_context(cafile=cert)


@pytest.mark.req("MID-18")
async def test_it_is_text_in_the_clear_and_by_tls(place: Any) -> None:
    address, trust = place
    async with let_in(address, trust=trust) as one, let_in(address, trust=trust) as two:
        await one.subscribe("a")
        for body in (*BODIES, "x" * 1_000_000):
            await two.say("PUB", "a", body)
            assert await one.told() == MiddlemanMessage("PUB", "a", {}, body)
        await two.say("REQ", "a", "now?", ReqID="1")
        request = await one.told()
        await one.say("RES", "a", "noon", ReqID=request.request_id)
        text = await two.recv()
        assert text == "RES a\nReqID:1\n\nnoon\n.\n"


@pytest.mark.req("MID-6", "MID-7")
async def test_native_clients_hear_it_and_it_hears_them(
    gateway: RunningGateway, connect: Connect, subject: str
) -> None:
    async with connect() as native, let_in(gateway.address) as peer:
        heard = await native.subscribe(f"{subject}.>")
        await peer.subscribe(f"{subject}.down")
        for body in BODIES:
            await peer.say("PUB", f"{subject}.up", body)
            assert (await heard.next()).text == body
            await native.publish(f"{subject}.down", body)
            assert await peer.told() == MiddlemanMessage("PUB", f"{subject}.down", {}, body)
            assert (await heard.next()).text == body


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"bytes", "bytes"),
        (b"\xff", '{"$blob":"/w=="}'),
        (weft.Message(temp=21.5), '{"temp":21.5}'),
        ({"a": [1, None]}, '{"a":[1,null]}'),
    ],
)
async def test_what_is_no_text_is_told_as_json(
    gateway: RunningGateway, connect: Connect, subject: str, body: Any, text: str
) -> None:
    async with connect() as native, let_in(gateway.address) as peer:
        await peer.subscribe(subject)
        await native.publish(subject, body)
        assert await peer.told() == MiddlemanMessage("PUB", subject, {}, text)


async def test_a_native_client_is_answered_by_a_middleman_service(
    gateway: RunningGateway, connect: Connect, subject: str
) -> None:
    async with connect() as native, let_in(gateway.address) as service:
        await service.subscribe(subject)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(native.request(subject, "now?"))
            request = await service.told()
            assert (request.command, request.target, request.body) == ("REQ", subject, "now?")
            await service.say("RES", subject, "noon", ReqID=request.request_id)
        assert asking.result().text == "noon"


async def test_a_middleman_client_is_answered_by_a_native_service(
    gateway: RunningGateway, connect: Connect, subject: str
) -> None:
    async with connect() as native, let_in(gateway.address) as client:
        await native.answer(subject, lambda asked: f"{asked.text}!")
        for number in range(20):
            await client.say("REQ", subject, f"hello {number}", ReqID=str(number))
        answers = [await client.told() for _ in range(20)]
        expected = [
            MiddlemanMessage("RES", subject, {"reqid": str(n)}, f"hello {n}!") for n in range(20)
        ]
        assert sorted(answers, key=lambda said: int(said.request_id)) == expected


async def test_a_native_service_that_leaves_is_an_error_at_once(
    gateway: RunningGateway, connect: Connect, subject: str
) -> None:
    async with let_in(gateway.address) as client:
        async with connect() as native:
            heard = await native.subscribe(subject)
            await client.say("REQ", subject, "", ReqID="7")
            await heard.next()
        assert error_in(await client.told()) == (subject, "ResponderGone", "7")


@asynccontextmanager
async def browser(address: str) -> AsyncIterator[ClientConnection]:
    """A WebSocket that speaks datagrams, and was welcomed."""
    url = f"ws://{address}/default/ws"
    async with dial(url, open_timeout=LIMIT_S) as socket:
        assert "welcome" in json.loads(await socket.recv())
        yield socket


async def test_browsers_hear_it_and_it_hears_them(gateway: RunningGateway, subject: str) -> None:
    async with browser(gateway.address) as page, let_in(gateway.address) as peer:
        await page.send(json.dumps({"interest": f"/{subject}/up", "ack": 1}))
        assert json.loads(await page.recv()) == {"ok": 1}
        await peer.subscribe(f"{subject}.down")
        for body in BODIES:
            await peer.say("PUB", f"{subject}.up", body)
            told = json.loads(await page.recv())
            assert (told["path"], told["data"]) == (f"/{subject}/up", body)
            await page.send(json.dumps({"path": f"/{subject}/down", "data": body}))
            assert await peer.told() == MiddlemanMessage("PUB", f"{subject}.down", {}, body)


async def test_browsers_answer_it(gateway: RunningGateway, subject: str) -> None:
    async with browser(gateway.address) as page, let_in(gateway.address) as client:
        await page.send(json.dumps({"interest": f"/{subject}", "ack": 1}))
        assert json.loads(await page.recv()) == {"ok": 1}
        await client.say("REQ", subject, "now?", ReqID="7")
        asked = json.loads(await page.recv())
        assert (asked["request"], asked["data"]) == (True, "now?")
        await page.send(json.dumps({"path": asked["reply"], "data": {"hour": 12}}))
        assert await client.told() == MiddlemanMessage(
            "RES", subject, {"reqid": "7"}, '{"hour":12}'
        )


@pytest.mark.req("MID-4")
async def test_the_conversation_on_the_page_is_had_as_it_is_printed(
    gateway: RunningGateway, service: str
) -> None:
    [block] = re.findall(r"^```text\n(S> .*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    turns = re.findall(r"^(\w)([<>]) ?(.*)$", block, re.MULTILINE)
    known: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        peers = {
            name: await stack.enter_async_context(dialled(gateway.address, service))
            for name in ("S", "C")
        }
        for who, way, text in messages_in(turns):
            if way == ">":
                await peers[who].send(replaced(text, known))
            else:
                told = str(await peers[who].recv())
                printed, real = request_id_in(text), request_id_in(told)
                known.setdefault(printed, real)
                assert told == replaced(text, known)


def messages_in(turns: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Whole messages: who says or is told them, and the text; a key and a welcome are a line."""
    found: list[tuple[str, str, str]] = []
    lines: list[str] = []
    for who, way, line in turns:
        lines.append(line)
        if len(lines) == 1 and (line.endswith("Key") or line == "MM OK"):
            found.append((who, way, line))
            lines = []
        elif line == ".":
            found.append((who, way, "\n".join([*lines, ""])))
            lines = []
    assert not lines
    return found


def request_id_in(text: str) -> str:
    found = re.search(r"^ReqID:(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def replaced(text: str, known: dict[str, str]) -> str:
    printed = request_id_in(text)
    return text.replace(f"ReqID:{printed}", f"ReqID:{known.get(printed, printed)}")
