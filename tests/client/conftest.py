"""A real gateway on a thread of its own, and a scripted one for what no real gateway would do."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from weft.client.asyncio.connection import AsyncConnection
from weft.client.sync.loop_thread import Background
from weft.gateway.gateway import Gateway
from weft.wire import frames
from weft.wire.frames import Decoder, Flag, Frame, Kind
from weft.wire.message.message import Field, Message

INBOX = "_INBOX.0badcafe.000000010123456789abcdef"


class RunningGateway:
    """A gateway that can be stopped, and started again where it was."""

    def __init__(self) -> None:
        self._background = Background("gateway")
        self._gateway: Gateway | None = None
        self.address = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        self._background.run(self._start())

    def stop(self) -> None:
        """End at once, as a gateway that crashed does."""
        if self._gateway is not None:
            self._background.run(self._gateway.close())
            self._gateway = None

    def drain(self) -> None:
        """Say goodbye to everybody, then end."""
        if self._gateway is not None:
            self._background.run(self._gateway.drain())
            self.stop()

    def end(self) -> None:
        self.stop()
        self._background.stop()

    async def _start(self) -> None:
        self._gateway = Gateway(listen=self.address, workers="inline")
        await self._gateway.start()
        self.address = self._gateway.address


@pytest.fixture
def running() -> Iterator[RunningGateway]:
    gateway = RunningGateway()
    yield gateway
    gateway.end()


@pytest.fixture
def another() -> Iterator[RunningGateway]:
    gateway = RunningGateway()
    yield gateway
    gateway.end()


@pytest.fixture
def gateway(running: RunningGateway) -> str:
    """The address of a gateway."""
    return running.address


class Peer:
    """The scripted gateway's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._decoder = Decoder(8 << 20)

    async def frame(self, kind: int) -> Frame:
        """The next frame of a kind; others before it are passed over."""
        while True:
            frame = self._decoder.next_frame()
            if frame is None:
                data = await self.reader.read(65536)
                if not data:
                    raise ConnectionError("the client hung up")
                self._decoder.feed(data)
            elif frame[4] == kind:
                return frames.parse(frame)

    async def hung_up(self) -> None:
        """Wait until the client has gone."""
        with pytest.raises(ConnectionError):
            await self.frame(99)

    def welcome(self, **facts: Any) -> None:
        told = {
            "version": 1,
            "gateway": "scripted",
            "inbox": INBOX,
            "body_limit": 1 << 20,
            "ping_s": 30.0,
            **facts,
        }
        self.send(Kind.WELCOME, b"default", Message.from_dict(told), b"you.1")

    def send(
        self,
        kind: int,
        subject: bytes = b"",
        body: Message | bytes = b"",
        reply: bytes = b"",
        flags: int = 0,
    ) -> None:
        content = body.encode() if isinstance(body, Message) else body
        self.writer.write(frames.encode(kind, subject, content, reply, flags))

    def refuse(self, error: tuple[int, str], asked: Frame, flags: int = Flag.ANSWER) -> None:
        number, text = error
        told = Message(number=number, name="x", text=text, kind=int(asked.kind))
        self.send(Kind.ERROR, asked.subject, told, asked.reply, flags)

    def gap(self, reason: str, count: int) -> None:
        self.send(Kind.GAP, body=Message(Field.uint64("count", count), reason=reason))

    async def confirm(self) -> Frame:
        """Say OK to the next subscription."""
        asked = await self.frame(Kind.SUBSCRIBE)
        self.send(Kind.OK, asked.subject, b"", asked.reply, Flag.ANSWER)
        return asked

    def close(self) -> None:
        self.writer.close()


class ScriptedGateway:
    """A server whose connections do what a test says."""

    def __init__(self) -> None:
        self._arrived: asyncio.Queue[Peer] = asyncio.Queue()
        self._server: asyncio.Server | None = None
        self._peers: list[Peer] = []
        self.address = ""

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._met, "127.0.0.1", port)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for peer in self._peers:
            peer.close()
            await asyncio.wait([asyncio.ensure_future(peer.writer.wait_closed())])

    async def part(self, connection: AsyncConnection) -> None:
        """Close a client's connection, as a gateway does that is told goodbye."""
        closing = asyncio.ensure_future(connection.close())
        for peer in self._peers:
            peer.close()
        await closing

    async def stranger(self) -> Peer:
        """The next connection, which has said CONNECT and awaits an answer."""
        peer = await self._arrived.get()
        await peer.frame(Kind.CONNECT)
        return peer

    async def peer(self, **facts: Any) -> Peer:
        """The next connection, welcomed."""
        peer = await self.stranger()
        peer.welcome(**facts)
        return peer

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self._peers.append(peer)
        self._arrived.put_nowait(peer)


@asynccontextmanager
async def _scripted() -> AsyncIterator[ScriptedGateway]:
    gateway = ScriptedGateway()
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop()


@pytest.fixture
def scripted() -> Callable[[], AbstractAsyncContextManager[ScriptedGateway]]:
    """Makes gateways that do what a test says."""
    return _scripted
