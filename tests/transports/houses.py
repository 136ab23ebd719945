"""A house with its doors on the running loop, and guests on real sockets who speak HTTP to it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.transports.loops import small_buffers, tcp_pair, unix_pair
from websockets.frames import CLOSE, Frame, Opcode
from websockets.protocol import CLIENT
from websockets.protocol import Protocol as Conversation

from weft.broker.limits import Limits
from weft.broker.service import Service
from weft.gateway.worker.http_routes import furnish
from weft.transports.http.origins import WebRules
from weft.transports.http.server import HttpServer
from weft.transports.loop.poller import Poll
from weft.transports.loop.turn import Turn

HOST = b"Host: localhost"
UPGRADE = (
    *(b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13"),
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


@asynccontextmanager
async def housing(
    limits: Limits | None = None, rules: WebRules | None = None
) -> AsyncIterator[HttpServer]:
    """The doors of a service called weather."""
    loop = asyncio.get_running_loop()
    service = Service("weather", "london-1", 7, limits or Limits())
    turn = Turn(service, loop)
    turn.begin()
    turn.flush()
    poll = Poll(turn, loop)
    house = HttpServer(turn, poll, rules or WebRules())
    furnish(house)
    try:
        yield house
    finally:
        house.close()
        turn.flush()
        poll.close()


def get(target: bytes, *headers: bytes, method: bytes = b"GET") -> bytes:
    """The head of a request."""
    return b"\r\n".join([method + b" " + target + b" HTTP/1.1", *(headers or (HOST,)), b"", b""])


class Guest:
    """The other end of a connection that speaks HTTP."""

    def __init__(self, house: HttpServer, *, is_small: bool = False, is_tcp: bool = False) -> None:
        self._client, theirs = tcp_pair() if is_tcp else unix_pair()
        if is_small:
            small_buffers(self._client, theirs)
        self.sock = self._client.sock
        self.unread = b""
        house.adopt(theirs.detach())

    async def say(self, *data: bytes) -> None:
        await self._client.say(*data)

    async def read(self) -> bytes:
        """What comes next; nothing at the end, in whatever way that comes."""
        try:
            return await asyncio.get_running_loop().sock_recv(self.sock, 1 << 16)
        except ConnectionError:
            return b""

    async def hear_end(self) -> bytes:
        """Everything up to the end of the connection."""
        while data := await self.read():
            self.unread += data
        heard, self.unread = self.unread, b""
        return heard

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: its status, its headers, its body."""
        while b"\r\n\r\n" not in self.unread:
            data = await self.read()
            assert data, self.unread
            self.unread += data
        head, _, self.unread = self.unread.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in lines}
        size = int(headers.get("content-length", "0"))
        while len(self.unread) < size:
            data = await self.read()
            assert data, self.unread
            self.unread += data
        body, self.unread = self.unread[:size], self.unread[size:]
        return int(first.split(" ")[1]), headers, body

    async def ask(self, *data: bytes) -> int:
        """The status of the answer to some bytes."""
        await self.say(*data)
        return (await self.answer())[0]

    def reset(self) -> None:
        self._client.reset()

    def close(self) -> None:
        self.sock.close()


class Page(Guest):
    """A guest that speaks WebSocket."""

    async def open(self, *headers: bytes, target: bytes = b"/weather/ws") -> dict[str, str]:
        """Shake hands; the headers of the answer."""
        await self.say(get(target, HOST, *UPGRADE, *headers))
        status, answered, _ = await self.answer()
        assert status == 101
        # Sizes are not what is tried here.
        self._conversation = Conversation(CLIENT, max_size=None)
        self._events: list[Frame] = []
        if self.unread:
            self._take(self.unread)
        return answered

    async def greet(self, *headers: bytes) -> dict[str, Any]:
        """Shake hands, and be welcome."""
        await self.open(*headers)
        welcome: dict[str, Any] = (await self.told())["welcome"]
        return welcome

    async def tell(self, *datagrams: object) -> None:
        """Send datagrams, each a message."""
        await self.say(*(text(json.dumps(each)) for each in datagrams))

    async def told(self) -> dict[str, Any]:
        """The next datagram."""
        frame = await self.frame()
        assert frame.opcode is Opcode.TEXT, frame
        datagram: dict[str, Any] = json.loads(bytes(frame.data))
        return datagram

    async def frame(self) -> Frame:
        """The next frame."""
        while not self._events:
            data = await self.read()
            assert data, "the connection ended"
            self._take(data)
        return self._events.pop(0)

    async def hear_close(self) -> tuple[int, str]:
        """The code and the text that it is closed with; what comes before is passed over."""
        while (frame := await self.frame()).opcode is not CLOSE:
            pass
        data = bytes(frame.data)
        return int.from_bytes(data[:2], "big"), data[2:].decode()

    def _take(self, data: bytes) -> None:
        self._conversation.receive_data(data)
        assert self._conversation.parser_exc is None, self._conversation.parser_exc
        received = self._conversation.events_received()
        self._events += [event for event in received if isinstance(event, Frame)]


def framed(opcode: int, data: bytes = b"", *, fin: bool = True) -> bytes:
    """A frame as a client sends it."""
    return Frame(Opcode(opcode), data, fin).serialize(mask=True)


def text(data: str | bytes) -> bytes:
    """A text as a client sends it."""
    return framed(Opcode.TEXT, data.encode() if isinstance(data, str) else data)


def raw(
    first: int, data: bytes = b"", *, length: int | None = None, is_masked: bool = True
) -> bytes:
    """A frame with whatever first byte and length."""
    size = len(data) if length is None else length
    mask = os.urandom(4) if is_masked else b""
    bit = 0x80 if is_masked else 0
    if size < 126:
        head = bytes((first, bit | size))
    elif size < 1 << 16:
        head = bytes((first, bit | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((first, bit | 127)) + size.to_bytes(8, "big")
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)) if is_masked else data
    return head + mask + masked
