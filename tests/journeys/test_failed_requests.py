"""A responder that fails says so: nobody waits for an answer that does not come."""

import asyncio
import contextvars
import json
import logging
import urllib.error
import urllib.request
from typing import Any

import pytest
from tests.journeys.clients import LIMIT_S
from tests.journeys.running import RunningGateway
from tests.transports.middleman.raw_peer import let_in
from websockets.asyncio.client import connect as dial

import weft
from weft.errors import RequestFailed, UsageError

INTERNAL = "/srv/quotes/prices.db is locked"


def fails(_: Any) -> None:
    raise ValueError(INTERNAL)


async def fails_later(_: Any) -> None:
    await asyncio.sleep(0)
    raise ValueError(INTERNAL)


@pytest.mark.parametrize("handler", [fails, fails_later])
async def test_a_handler_that_raises_fails_its_request(
    gateway: RunningGateway, subject: str, handler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with weft.connect(gateway.address) as asker, weft.connect(gateway.address) as server:
        await server.subscribe(subject, handler).ready()
        with pytest.raises(RequestFailed, match="the responder failed") as caught:
            await asker.send_request(subject, {}, timeout=3600.0)
        assert INTERNAL not in str(caught.value)
        assert INTERNAL in caplog.text


def test_a_callback_that_raises_fails_its_request(
    gateway: RunningGateway, subject: str, caplog: pytest.LogCaptureFixture
) -> None:
    with weft.Connection(gateway.address) as asker, weft.Connection(gateway.address) as server:
        server.subscribe(subject, fails)
        with pytest.raises(RequestFailed, match="the responder failed") as caught:
            asker.send_request(subject, {}, timeout=3600.0)
        assert INTERNAL not in str(caught.value)
        assert INTERNAL in caplog.text


async def test_a_responder_says_why(gateway: RunningGateway, subject: str) -> None:
    async with weft.connect(gateway.address) as asker, weft.connect(gateway.address) as server:
        await server.subscribe(subject, lambda m: m.respond_error("no such symbol")).ready()
        for masked in (False, True):
            with pytest.raises(RequestFailed, match=r"^no such symbol$"):
                await asker.send_request(subject, {}, timeout=3600.0, masked=masked)
        (answer,) = await asker.gather(subject, {}, count=1)
        assert isinstance(answer.error, RequestFailed)
        assert str(answer.error) == "no such symbol"


def test_a_blocking_responder_says_why(gateway: RunningGateway, subject: str) -> None:
    with weft.Connection(gateway.address) as asker, weft.Connection(gateway.address) as server:
        server.subscribe(subject, lambda m: m.respond_error("no such symbol"))
        with pytest.raises(RequestFailed, match=r"^no such symbol$"):
            asker.send_request(subject, {}, timeout=3600.0)


async def test_a_request_is_answered_once(gateway: RunningGateway, subject: str) -> None:
    async with weft.connect(gateway.address) as client, client.subscribe(subject) as asked:
        asking = asyncio.create_task(client.send_request(subject, {}))
        request = await asked.next(LIMIT_S)
        before = request.is_waiting
        await request.respond({"n": 1})
        assert (before, request.is_waiting) == (True, False)
        for again in (request.respond, request.respond_error):
            with pytest.raises(UsageError, match="answered already"):
                await again("x")
        assert (await asking)["n"] == 1


async def test_an_answer_that_cannot_be_published_leaves_room_for_another(
    gateway: RunningGateway, subject: str
) -> None:
    async with weft.connect(gateway.address) as client, client.subscribe(subject) as asked:
        asking = asyncio.create_task(client.send_request(subject, {}))
        request = await asked.next(LIMIT_S)
        with pytest.raises(UsageError):
            await request.respond({"n": object()})
        await request.respond({"n": 1})
        assert (await asking)["n"] == 1


async def test_a_handler_that_answered_before_it_raised_has_answered(
    gateway: RunningGateway, subject: str
) -> None:
    async def answers(request: Any) -> None:
        await request.respond("done")
        raise ValueError("too late")

    async with weft.connect(gateway.address, logger=logging.getLogger("quiet")) as client:
        await client.subscribe(subject, answers).ready()
        assert (await client.send_request(subject, {})).text == "done"


def ask(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:  # noqa: S310  # our own
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


async def test_scripts_get_a_status_and_the_reason(gateway: RunningGateway, subject: str) -> None:
    async with weft.connect(gateway.address) as server:
        await server.subscribe(subject, lambda m: m.respond_error("no such symbol")).ready()
        url = f"http://{gateway.address}/default/request/{subject}?timeout=60"
        status, told = await asyncio.to_thread(ask, url)
        assert status == 500
        assert told["error"] == {"number": 4018, "name": "RequestFailed", "text": "no such symbol"}


async def test_datagrams_carry_failures_both_ways(gateway: RunningGateway, subject: str) -> None:
    url = f"ws://{gateway.address}/default/ws"
    async with weft.connect(gateway.address) as client, dial(url, open_timeout=LIMIT_S) as socket:
        inbox = json.loads(await socket.recv())["welcome"]["inbox"]
        await client.subscribe(subject, lambda m: m.respond_error("not today")).ready()
        request = {"path": f"/{subject}", "data": {}, "request": True, "reply": f"{inbox}/1"}
        await socket.send(json.dumps(request))
        told = json.loads(await socket.recv())
        assert told["path"] == f"{inbox}/1"
        assert told["error"] == {"number": 4018, "name": "RequestFailed", "text": "not today"}
        await socket.send(json.dumps({"interest": f"/{subject}/below", "ack": 1}))
        assert json.loads(await socket.recv())["ok"] == 1
        asking = asyncio.create_task(client.send_request(f"{subject}.below", {}))
        asked = json.loads(await socket.recv())
        await socket.send(json.dumps({"path": asked["reply"], "error": "not here"}))
        with pytest.raises(RequestFailed, match=r"^not here$"):
            await asking


async def test_middleman_carries_failures_both_ways(gateway: RunningGateway, subject: str) -> None:
    async with weft.connect(gateway.address) as client, let_in(gateway.address) as peer:
        await client.subscribe(subject, lambda m: m.respond_error("not today")).ready()
        await peer.say("REQ", subject, "", ReqID="7")
        told = await peer.told()
        assert (told.command, told.target, told.body) == ("ERR", subject, "not today")
        assert told.headers == {"error": "RequestFailed", "number": "4018", "reqid": "7"}
        below = f"{subject}.below"
        await peer.subscribe(below)
        asking = asyncio.create_task(client.send_request(below, {}, timeout=3600.0))
        request = await peer.told()
        headers = {"ReqID": request.request_id, "Error": "RequestFailed"}
        await peer.say("RES", below, "not here", **headers)
        with pytest.raises(RequestFailed, match=r"^not here$"):
            await asking


WHERE: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")


async def test_a_message_finds_no_context_of_the_one_before(
    gateway: RunningGateway, subject: str
) -> None:
    seen: list[str] = []
    done = asyncio.Event()

    async def handle(message: weft.AsyncReceived) -> None:
        seen.append(WHERE.get())
        WHERE.set(message.text)
        await asyncio.sleep(0)
        seen.append(WHERE.get())
        if len(seen) == 4:
            done.set()

    WHERE.set("where it was subscribed")
    async with weft.connect(gateway.address) as client:
        await client.subscribe(subject, handle).ready()
        WHERE.set("later")
        for text in ("a", "b"):
            await client.publish(subject, text)
        await asyncio.wait_for(done.wait(), LIMIT_S)
    assert seen == ["where it was subscribed", "a", "where it was subscribed", "b"]


def test_a_callback_finds_no_context_of_the_one_before(
    gateway: RunningGateway, subject: str
) -> None:
    seen: list[str] = []

    def handle(message: weft.BlockingReceived) -> None:
        seen.append(WHERE.get())
        WHERE.set(message.text)

    with weft.Connection(gateway.address) as client:
        client.subscribe(subject, handle)
        for text in ("a", "b"):
            client.publish(subject, text)
        client.drain()
    assert seen == ["nowhere", "nowhere"]
