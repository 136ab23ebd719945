"""Bayeux clients of a few lines, on real connections to a service on the running loop."""

import asyncio
import contextlib
import json
import os
import socket as sockets
from collections.abc import AsyncIterator
from time import monotonic_ns
from typing import Any, Self
from urllib.parse import quote

from tests.transports.loops import CONNECT, Client, tcp_pair, until
from websockets.asyncio.client import ClientConnection, connect

from weft.broker.auth.keys import KeyRecord, Keyring
from weft.broker.limits import Limits
from weft.broker.service import Service
from weft.transports.bayeux.handler import BayeuxDoor
from weft.transports.bayeux.session import BayeuxSession
from weft.transports.http.exchange import Request
from weft.transports.http.origins import WebRules
from weft.transports.http.server import HttpServer
from weft.transports.loop.poller import Poll
from weft.transports.loop.turn import Turn
from weft.transports.tcp import TcpDoor
from weft.wire.frames import Flag, Kind, encode
from weft.wire.message.message import Message

Said = dict[str, Any]
HANDSHAKE = {
    "channel": "/meta/handshake",
    "version": "1.0",
    "supportedConnectionTypes": ["long-polling", "websocket"],
    "id": "h",
}
_S = 1_000_000_000


class Hall:
    """A service whose only doors are this one and that of native clients."""

    def __init__(self, limits: Limits | None = None, **web: Any) -> None:
        loop = asyncio.get_running_loop()
        self.service = Service("weather", "g", 1, limits or Limits())
        self.turn = Turn(self.service, loop)
        self.turn.begin()
        self.turn.flush()
        self.poll = Poll(self.turn, loop)
        self.house = HttpServer(self.turn, self.poll, WebRules(**web))
        self.door = BayeuxDoor(self.house)
        self.house.doors["bayeux"] = self.door.answer
        self._writers: list[asyncio.StreamWriter] = []
        self._clients: list[Client] = []

    @property
    def sessions(self) -> int:
        return len(self.door.desk.sessions)

    def session(self, client: "Speaker") -> BayeuxSession:
        found = self.door.desk.sessions.find(client.client_id, Request("", "", "", (), {}, {}))
        assert found is not None
        return found

    async def http(self) -> "Polling":
        """A connection on which nothing was said."""
        ours = self._enter()
        reader, writer = await asyncio.open_connection(sock=ours)
        self._writers.append(writer)
        return Polling(reader, writer)

    async def polling(self, *channels: str, **ext: object) -> "Polling":
        """A client that has connected once and subscribed."""
        made = await self.http()
        await made.shake_hands(**ext)
        await made.ask(made.connect())
        for channel in channels:
            [answer] = await made.ask(made.said("/meta/subscribe", subscription=channel))
            assert answer["successful"], answer
        return made

    async def beside(self, client: "Polling") -> "Polling":
        """A second connection of the same client."""
        made = await self.http()
        made.client_id = client.client_id
        return made

    @contextlib.asynccontextmanager
    async def socket(self, **options: Any) -> AsyncIterator["Socket"]:
        """A WebSocket on which nothing was said."""
        url = "ws://localhost/weather/bayeux"
        async with connect(url, sock=self._enter(), **options) as made:
            yield Socket(made)

    async def native(self, *patterns: bytes) -> Client:
        """A client that speaks frames."""
        ours, theirs = tcp_pair()
        self._clients.append(ours)
        TcpDoor(self.turn, self.poll, theirs.detach()).open(1)
        wishes = [encode(Kind.SUBSCRIBE, each, flags=Flag.ANSWER) for each in patterns]
        await ours.say(CONNECT, *wishes)
        await ours.hear(1 + len(patterns))
        return ours

    def lock(self, *records: KeyRecord) -> None:
        """Let in those who have one of these keys, and nobody else."""
        self.service.set_keys(Keyring(records))
        self.turn.wake()

    async def hold(self, client: "Polling") -> "Polling":
        """A connect of a client that waits on a connection of its own."""
        made = await self.beside(client)
        made.say(made.connect())
        await until(lambda: self.session(client).is_waiting)
        return made

    def sweep(self, after_s: float = 0.0) -> None:
        """Do what is due after so long."""
        self.door.desk.sweep(monotonic_ns() + int(after_s * _S))
        self.turn.wake()

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        for client in self._clients:
            client.close()
        for peer in list(self.service.peers.values()):
            if peer.door is not None:
                peer.door.abort()
        self.house.close()
        # What is put off is done before nobody watches any more.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.poll.close()

    def _enter(self) -> sockets.socket:
        ours, theirs = tcp_pair()
        fd = theirs.detach()
        os.set_blocking(fd, False)
        self.house.adopt(fd)
        return ours.sock


@contextlib.asynccontextmanager
async def hall(limits: Limits | None = None, **web: Any) -> AsyncIterator[Hall]:
    made = Hall(limits, **web)
    try:
        yield made
    finally:
        await made.close()


def published(subject: bytes, **fields: Any) -> bytes:
    return encode(Kind.MESSAGE, subject, Message.from_dict(fields).encode())


class Answer:
    """What an HTTP request was answered."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def said(self) -> list[Said]:
        assert self.status == 200, self.body
        found: list[Said] = json.loads(self.body)
        return found


class Speaker:
    """Whoever says messages."""

    client_id = ""
    connection_type = ""

    def said(self, channel: str, **more: object) -> Said:
        return {"channel": channel, "clientId": self.client_id, "id": channel[-6:], **more}

    def connect(self, **more: object) -> Said:
        return self.said("/meta/connect", connectionType=self.connection_type, **more)


class Polling(Speaker):
    """A client on one HTTP connection."""

    connection_type = "long-polling"
    service = "weather"

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, body: bytes, *, method: str = "POST", more: str = "", **headers: str) -> None:
        """Send a request; `more` follows the door's path."""
        told = {"Host": "localhost", "Content-Type": "application/json"}
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} /{self.service}/bayeux{more} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in told.items()]
        if "Transfer-Encoding" not in told:
            lines.append(f"Content-Length: {len(body)}")
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def say(self, *messages: Said, more: str = "", **headers: str) -> None:
        self.send(json.dumps(list(messages)).encode(), more=more, **headers)

    async def hear(self) -> Answer:
        """The next answer."""
        status = int((await self.reader.readline()).split()[1])
        headers: dict[str, str] = {}
        while line := (await self.reader.readline()).strip().decode():
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Answer(status, headers, body)

    async def ask(self, *messages: Said, more: str = "", **headers: str) -> list[Said]:
        """What messages are answered."""
        self.say(*messages, more=more, **headers)
        return (await self.hear()).said

    async def script(self, callback: str, *messages: Said, **headers: str) -> Answer:
        """What messages in a URL are answered."""
        query = f"?jsonp={quote(callback)}&message={quote(json.dumps(list(messages)))}"
        self.send(b"", method="GET", more=query, **headers)
        return await self.hear()

    async def shake_hands(self, **ext: object) -> Said:
        [answer] = await self.ask(HANDSHAKE | ({"ext": ext} if ext else {}))
        self.client_id = answer.get("clientId", "")
        return answer


class Socket(Speaker):
    """A client on a WebSocket."""

    connection_type = "websocket"

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, *messages: Said) -> None:
        await self.socket.send(json.dumps(list(messages)))

    async def hear(self) -> list[Said]:
        found: list[Said] = json.loads(await self.socket.recv())
        return found

    async def ask(self, *messages: Said) -> list[Said]:
        await self.say(*messages)
        return await self.hear()

    async def open(self, *channels: str, **ext: object) -> Self:
        """Shake hands, connect for the first time and subscribe."""
        [answer] = await self.ask(HANDSHAKE | ({"ext": ext} if ext else {}))
        self.client_id = answer["clientId"]
        await self.ask(self.connect())
        for channel in channels:
            [answer] = await self.ask(self.said("/meta/subscribe", subscription=channel))
            assert answer["successful"], answer
        return self
