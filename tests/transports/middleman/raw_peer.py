"""A peer that speaks middleman to a real gateway, and knows nothing of Weft but the grammar."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close

from weft.transports.middleman.protocol import MiddlemanMessage, read, written

LIMIT_S = 20
KEY = "MyServerKey"


class MiddlemanPeer:
    """One WebSocket; every wait is bounded."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, text: str | bytes) -> None:
        await self.socket.send(text)

    async def recv(self) -> str | bytes:
        async with asyncio.timeout(LIMIT_S):
            return await self.socket.recv()

    async def say(self, command: str, target: str, body: str = "", **headers: str) -> None:
        await self.send(written(command, target, body, **headers))

    async def told(self) -> MiddlemanMessage:
        text = await self.recv()
        assert isinstance(text, str)
        return read(text)

    async def settle(self) -> list[MiddlemanMessage]:
        """Wait until the gateway has dealt with everything said; what was told until then."""
        before: list[MiddlemanMessage] = []
        await self.say("SETTLE", "settled")
        while (said := await self.told()).target != "settled":
            before.append(said)
        return before

    async def subscribe(self, target: str) -> None:
        await self.say("SUB", target)
        assert await self.settle() == []

    async def closed(self) -> Close:
        """Wait until the gateway has closed the WebSocket, and has said nothing else."""
        with pytest.raises(ConnectionClosed) as caught:
            await self.recv()
        assert caught.value.rcvd is not None
        return caught.value.rcvd


@asynccontextmanager
async def dialled(
    address: str, service: str = "default", trust: ssl.SSLContext | None = None
) -> AsyncIterator[MiddlemanPeer]:
    """A WebSocket on which nothing was said."""
    address = address.partition("://")[2] or address
    url = f"{'ws' if trust is None else 'wss'}://{address}/{service}/middleman"
    async with connect(url, ssl=trust, open_timeout=LIMIT_S, compression=None) as socket:
        yield MiddlemanPeer(socket)


@asynccontextmanager
async def let_in(
    address: str, service: str = "default", key: str = KEY, trust: ssl.SSLContext | None = None
) -> AsyncIterator[MiddlemanPeer]:
    """A peer whose key was accepted."""
    async with dialled(address, service, trust) as peer:
        await peer.send(key)
        assert await peer.recv() == "MM OK"
        yield peer


def error_in(said: MiddlemanMessage) -> tuple[str, str, str]:
    """Of an ERR: its target, its name and the ReqID it is about."""
    assert said.command == "ERR"
    assert said.body
    assert said.headers["number"].isdecimal()
    return said.target, said.headers["error"], said.headers.get("reqid", "")
