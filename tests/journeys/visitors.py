"""Everyone who can come to a gateway, each by its own door and with as little of Weft as it takes.

A visitor says a text at a path, listens to a path, and hears texts there. What is refused is raised
as Denied with the name of the error.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from http.client import HTTPResponse
from typing import Any, Protocol

from tests.transports.middleman.raw_peer import MiddlemanPeer, dialled, error_in
from tests.transports.web import Browser, event, line
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial

import weft
from weft.transports.middleman.protocol import MiddlemanMessage

LIMIT_S = 20


class Denied(Exception):  # what a test looks for
    """The gateway refused it, with this error."""


class Visitor(Protocol):
    """One who came."""

    async def listen(self, path: str) -> None:
        """Listen to a path from now on."""

    async def say(self, path: str, text: str) -> None:
        """Publish a text."""

    async def hear(self) -> tuple[str, str]:
        """The next path and text."""


class Native:
    """Native frames, over TCP or WebSocket."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._heard: Any = None

    async def listen(self, path: str) -> None:
        self._heard = self._client.subscribe(path[1:].replace("/", "."))
        try:
            await self._heard.ready()
        except weft.WeftError as error:
            raise Denied(type(error).__name__) from error

    async def say(self, path: str, text: str) -> None:
        try:
            await self._client.publish(path[1:].replace("/", "."), text, acknowledge=True)
        except weft.WeftError as error:
            raise Denied(type(error).__name__) from error

    async def hear(self) -> tuple[str, str]:
        message = await anext(self._heard)
        return "/" + message.subject.replace(".", "/"), message.to_dict()[""]


class Json:
    """Datagrams over a WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._heard: list[dict[str, Any]] = []

    async def listen(self, path: str) -> None:
        await self._ask({"interest": path})

    async def say(self, path: str, text: str) -> None:
        await self._ask({"path": path, "data": text})

    async def hear(self) -> tuple[str, str]:
        while not self._heard:
            await self._read()
        told = self._heard.pop(0)
        return told["path"], told["data"]

    async def _ask(self, datagram: dict[str, Any]) -> None:
        await self._socket.send(json.dumps({**datagram, "ack": 1}))
        while True:
            told = await self._read()
            if "error" in told:
                raise Denied(told["error"]["name"])
            if "ok" in told:
                return

    async def _read(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(await self._socket.recv())
        if "data" in told:
            self._heard.append(told)
        return told


class Middleman:
    """A client of the middleman protocol."""

    def __init__(self, peer: MiddlemanPeer) -> None:
        self._peer = peer
        self._heard: list[MiddlemanMessage] = []

    async def listen(self, path: str) -> None:
        await self._ask("SUB", path, "")

    async def say(self, path: str, text: str) -> None:
        await self._ask("PUB", path, text)

    async def hear(self) -> tuple[str, str]:
        said = self._heard.pop(0) if self._heard else await self._peer.told()
        return "/" + said.target.replace(".", "/"), said.body

    async def _ask(self, command: str, path: str, body: str) -> None:
        await self._peer.say(command, path[1:].replace("/", "."), body)
        for said in await self._peer.settle():
            if said.command == "ERR":
                raise Denied(error_in(said)[1])
            self._heard.append(said)


class Bayeux:
    """A client of Bayeux, on a WebSocket or by long-polling."""

    def __init__(self, ask: Callable[[str], Awaitable[str]], read: Callable[[], Awaitable[str]]):
        self._ask_text = ask
        self._read_text = read
        self._known_by = ""
        self._heard: list[dict[str, Any]] = []

    async def enter(self, key: str) -> None:
        shown_key = {"ext": {"authentication": {"key": key}}} if key else {}
        types = ["long-polling", "websocket"]
        told = await self._ask("/meta/handshake", supportedConnectionTypes=types, **shown_key)
        self._known_by = told["clientId"]
        await self._ask("/meta/connect")

    async def listen(self, path: str) -> None:
        await self._ask("/meta/subscribe", subscription=path)

    async def say(self, path: str, text: str) -> None:
        await self._ask(path, data=text)

    async def hear(self) -> tuple[str, str]:
        while not self._heard:
            self._note(await self._read_text())
        told = self._heard.pop(0)
        return told["channel"], told["data"]

    @property
    def connect(self) -> str:
        """What waits for messages."""
        return json.dumps([{"channel": "/meta/connect", "clientId": self._known_by}])

    async def _ask(self, channel: str, **more: Any) -> dict[str, Any]:
        message = {"channel": channel, "clientId": self._known_by, **more}
        answers = self._note(await self._ask_text(json.dumps([message])))
        while not answers:
            answers = self._note(await self._read_text())
        if not answers[0]["successful"]:
            raise Denied(answers[0]["ext"]["error"]["name"])
        return answers[0]

    def _note(self, text: str) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = json.loads(text)
        self._heard += [each for each in told if "data" in each]
        return [each for each in told if "successful" in each]


class Plain:
    """Plain HTTP: POST to publish, an event stream to listen."""

    def __init__(self, address: str, headers: dict[str, str]) -> None:
        self._headers = headers
        self._posting = Browser(address)
        self._listening = Browser(address)
        self._stream: HTTPResponse | None = None

    async def listen(self, path: str) -> None:
        self._stream = await self._listening.listen(f"/default/stream{path}", **self._headers)
        if self._stream.status != 200:
            raise Denied(json.loads(self._stream.read())["error"]["name"])
        await line(self._stream)

    async def say(self, path: str, text: str) -> None:
        answer = await self._posting.ask(
            "POST",
            f"/default/publish{path}",
            text.encode(),
            content_type="text/plain",
            **self._headers,
        )
        if answer.status != 200:
            raise Denied(answer.error)

    async def hear(self) -> tuple[str, str]:
        assert self._stream is not None
        told = json.loads((await event(self._stream))["data"])
        return told["path"], told["data"]

    def close(self) -> None:
        self._posting.close()
        self._listening.close()


class Tunneled:
    """A tunnel: datagrams down one answer that lasts, or many that do not, up by requests."""

    def __init__(self, address: str, headers: dict[str, str], format_name: str) -> None:
        self._headers = headers
        self._format = format_name
        self._saying = Browser(address)
        self._told = Browser(address)
        self._events = ""
        self._stream: HTTPResponse | None = None
        self._known_by = ""
        self._polled: list[dict[str, Any]] = []
        self._last = ""
        self._heard: list[dict[str, Any]] = []

    async def open(self) -> None:
        """Open it, and learn its id."""
        target = f"/default/tunnel?new=1&format={self._format}"
        if self._format == "poll":
            await self._poll(target)
        else:
            self._stream = await self._told.listen(target, **self._headers)
            if self._stream.status != 200:
                raise Denied(json.loads(self._stream.read())["error"]["name"])
        self._known_by = (await self._read())["tunnel"]
        self._events = f"/default/events?tunnel={self._known_by}"

    async def listen(self, path: str) -> None:
        await self._ask({"interest": path})

    async def say(self, path: str, text: str) -> None:
        await self._ask({"path": path, "data": text})

    async def hear(self) -> tuple[str, str]:
        while not self._heard:
            await self._read()
        told = self._heard.pop(0)
        return told["path"], told["data"]

    def close(self) -> None:
        self._saying.close()
        self._told.close()

    async def _ask(self, datagram: dict[str, Any]) -> None:
        body = json.dumps({**datagram, "ack": 1}).encode()
        answer = await self._saying.ask("POST", self._events, body)
        assert answer.status == 202, answer
        while True:
            told = await self._read()
            if "error" in told:
                raise Denied(told["error"]["name"])
            if "ok" in told:
                return

    async def _read(self) -> dict[str, Any]:
        told = await self._next()
        self._last = told.get("id", self._last)
        if "data" in told:
            self._heard.append(told)
        return told

    async def _next(self) -> dict[str, Any]:
        if self._format == "poll":
            while not self._polled:
                last = f"&last={self._last}" if self._last else ""
                await self._poll(f"/default/tunnel?tunnel={self._known_by}&format=poll{last}")
            return self._polled.pop(0)
        assert self._stream is not None
        text = b"\n"
        if self._format == "sse":
            text = (await event(self._stream))["data"].encode()
        while text == b"\n":
            text = await line(self._stream)
        told: dict[str, Any] = json.loads(text)
        return told

    async def _poll(self, target: str) -> None:
        answer = await self._told.ask("GET", target, None, **self._headers)
        if answer.status != 200:
            raise Denied(answer.error)
        self._polled += json.loads(answer.body)


@asynccontextmanager
async def by_tcp(address: str, key: str) -> AsyncIterator[Visitor]:
    async with weft.connect(address, key=key) as client:
        yield Native(client)


@asynccontextmanager
async def by_binary_websocket(address: str, key: str) -> AsyncIterator[Visitor]:
    async with weft.connect(f"ws://{address}", key=key) as client:
        yield Native(client)


@asynccontextmanager
async def by_json_websocket(query: str, address: str, key: str) -> AsyncIterator[Visitor]:
    url = f"ws://{address}/default/ws{query}"
    async with dial(url, additional_headers=shown(key), open_timeout=LIMIT_S) as socket:
        yield Json(socket)


@asynccontextmanager
async def by_middleman(address: str, key: str) -> AsyncIterator[Visitor]:
    async with dialled(address) as peer:
        await peer.send(key or "anything")
        assert await peer.recv() == "MM OK"
        yield Middleman(peer)


@asynccontextmanager
async def by_bayeux_websocket(address: str, key: str) -> AsyncIterator[Visitor]:
    async with dial(f"ws://{address}/default/bayeux", open_timeout=LIMIT_S) as socket:

        async def read() -> str:
            return str(await socket.recv())

        async def ask(text: str) -> str:
            await socket.send(text)
            return await read()

        visitor = Bayeux(ask, read)
        await visitor.enter(key)
        yield visitor


@asynccontextmanager
async def by_bayeux_polling(address: str, key: str) -> AsyncIterator[Visitor]:
    browser = Browser(address)

    async def ask(text: str) -> str:
        answer = await browser.ask(
            "POST", "/default/bayeux", text.encode(), content_type="application/json"
        )
        return answer.body.decode()

    async def read() -> str:
        return await ask(visitor.connect)

    visitor = Bayeux(ask, read)
    try:
        await visitor.enter(key)
        yield visitor
    finally:
        browser.close()


@asynccontextmanager
async def by_http(address: str, key: str) -> AsyncIterator[Visitor]:
    visitor = Plain(address, shown(key))
    try:
        yield visitor
    finally:
        visitor.close()


@asynccontextmanager
async def by_tunnel(format_name: str, address: str, key: str) -> AsyncIterator[Visitor]:
    visitor = Tunneled(address, shown(key), format_name)
    try:
        await visitor.open()
        yield visitor
    finally:
        visitor.close()


def shown(key: str) -> dict[str, str]:
    """The headers that show a key."""
    return {"Authorization": f"Bearer {key}"} if key else {}


DOORS: dict[str, Callable[[str, str], Any]] = {
    "tcp": by_tcp,
    "websocket binary": by_binary_websocket,
    "websocket json": partial(by_json_websocket, ""),
    "websocket tunnel": partial(by_json_websocket, "?new=1"),
    "middleman": by_middleman,
    "bayeux websocket": by_bayeux_websocket,
    "bayeux polling": by_bayeux_polling,
    "http": by_http,
    "tunnel ndjson": partial(by_tunnel, "ndjson"),
    "tunnel sse": partial(by_tunnel, "sse"),
    "tunnel poll": partial(by_tunnel, "poll"),
}
