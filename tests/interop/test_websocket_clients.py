"""Clients that others wrote speak `weft.json` with a gateway, and with each other."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import pytest

import weft

aiohttp = pytest.importorskip("aiohttp")
websocket = pytest.importorskip("websocket")
connect = pytest.importorskip("websockets.asyncio.client").connect

WAIT_S = 20


class Talking(Protocol):
    """One connection, whichever library made it."""

    async def tell(self, datagram: Any) -> None:
        """Send a datagram."""

    async def told(self) -> Any:
        """The next datagram."""


class Talk:
    """What two functions of a library make of it."""

    def __init__(
        self, send: Callable[[str], Awaitable[Any]], receive: Callable[[], Awaitable[Any]]
    ) -> None:
        self._send = send
        self._receive = receive

    async def tell(self, datagram: Any) -> None:
        async with asyncio.timeout(WAIT_S):
            await self._send(json.dumps(datagram))

    async def told(self) -> Any:
        async with asyncio.timeout(WAIT_S):
            return json.loads(await self._receive())


@asynccontextmanager
async def by_websockets(url: str) -> AsyncIterator[Talking]:
    async with connect(url, subprotocols=["weft.json"]) as socket:
        assert socket.subprotocol == "weft.json"
        yield Talk(socket.send, socket.recv)


@asynccontextmanager
async def by_websocket_client(url: str) -> AsyncIterator[Talking]:
    socket = await asyncio.to_thread(
        websocket.create_connection, url, timeout=WAIT_S, suppress_origin=True
    )

    async def send(text: str) -> None:
        await asyncio.to_thread(socket.send, text)

    async def receive() -> str:
        text: str = await asyncio.to_thread(socket.recv)
        return text

    try:
        yield Talk(send, receive)
    finally:
        await asyncio.to_thread(socket.close)


@asynccontextmanager
async def by_aiohttp(url: str) -> AsyncIterator[Talking]:
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
        yield Talk(socket.send_str, socket.receive_str)


LIBRARIES = {
    "websockets": by_websockets,
    "websocket-client": by_websocket_client,
    "aiohttp": by_aiohttp,
}


@pytest.mark.req("RLY-1")
@pytest.mark.parametrize("speaks", LIBRARIES)
@pytest.mark.parametrize("listens", LIBRARIES)
async def test_what_one_library_publishes_another_hears(speaks: str, listens: str) -> None:
    async with AsyncExitStack() as stack:
        gateway = weft.Gateway(listen="127.0.0.1:0", workers="inline")
        await stack.enter_async_context(gateway)
        url = f"ws://{gateway.address}/default/ws"
        speaker = await stack.enter_async_context(LIBRARIES[speaks](url))
        listener = await stack.enter_async_context(LIBRARIES[listens](url))
        for each in (speaker, listener):
            assert (await each.told())["welcome"]["service"] == "default"
        await listener.tell({"interest": "/a", "subpaths": True, "ack": "i"})
        assert await listener.told() == {"ok": "i"}
        for data in (None, "", "ü" * 70_000, {"x": [1, 2.5, {"y": None}]}, list(range(1000))):
            await speaker.tell({"path": "/a/b", "data": data, "ack": 1})
            said = await speaker.told()
            heard = await listener.told()
            assert (heard["id"], heard["path"], heard["data"]) == (said["id"], "/a/b", data)


@pytest.mark.parametrize("name", LIBRARIES)
async def test_a_library_is_told_what_is_wrong_and_goes_on(name: str) -> None:
    async with (
        weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway,
        LIBRARIES[name](f"ws://{gateway.address}/default/ws") as talk,
    ):
        await talk.told()
        await talk.tell({"path": "no path", "ack": 7})
        told = await talk.told()
        assert (told["error"]["name"], told["ack"]) == ("BadSubject", 7)
        await talk.tell({"ping": "still there?"})
        assert await talk.told() == {"pong": "still there?"}


@pytest.mark.parametrize("name", LIBRARIES)
async def test_a_library_and_a_native_client_ask_each_other(name: str) -> None:
    async with AsyncExitStack() as stack:
        gateway = weft.Gateway(listen="127.0.0.1:0", workers="inline")
        await stack.enter_async_context(gateway)
        url = f"ws://{gateway.address}/default/ws"
        talk = await stack.enter_async_context(LIBRARIES[name](url))
        inbox = (await talk.told())["welcome"]["inbox"]
        native = await stack.enter_async_context(weft.connect(gateway.address))
        native.subscribe("native", lambda asked: asked.respond(b"from native"))
        await native.flush()
        await talk.tell({"path": "/native", "request": True, "reply": f"{inbox}/1"})
        assert (await talk.told())["data"] == {"$blob": "ZnJvbSBuYXRpdmU="}
        await talk.tell({"interest": "/page", "ack": 1})
        assert await talk.told() == {"ok": 1}
        asking = asyncio.create_task(native.send_request("page", b"?", timeout=WAIT_S))
        asked = await talk.told()
        await talk.tell({"path": asked["reply"], "data": {"x": 1}})
        assert (await asking)["x"] == 1
