"""A client made of a socket and frames written by hand, for what the library hides."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

from weft.wire.frames import Decoder, Flag, Frame, Kind, encode, parse
from weft.wire.message.message import Message

LIMIT_S = 15.0
READ_BYTES = 256 << 10
ANSWER = Flag.ANSWER
BARE = Flag.BARE
REQUEST = Flag.REQUEST


class Raw:
    """One connection; nothing is read from it but what is asked for."""

    def __init__(self, sock: socket.socket) -> None:
        self.inbox = b""
        self._socket = sock
        self._loop = asyncio.get_running_loop()
        self._decoder = Decoder(8 << 20)
        self._pings = 0

    @classmethod
    async def dial(cls, address: str, receive_buffer: int = 0) -> Self:
        """Connect and say nothing; a small buffer makes it plain when nobody reads."""
        host, _, port = address.rpartition(":")
        sock = socket.socket()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            async with asyncio.timeout(LIMIT_S):
                await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
        except BaseException:
            sock.close()
            raise
        return cls(sock)

    async def send(self, data: bytes) -> None:
        async with asyncio.timeout(LIMIT_S):
            await self._loop.sock_sendall(self._socket, data)

    async def frame(self) -> Frame | None:
        """The next frame, or None if the gateway has closed the connection."""
        while (frame := self._decoder.next_frame()) is None:
            async with asyncio.timeout(LIMIT_S):
                try:
                    data = await self._loop.sock_recv(self._socket, READ_BYTES)
                except ConnectionResetError:
                    data = b""
            if not data:
                return None
            self._decoder.feed(data)
        return parse(frame)

    async def next(self, kind: Kind = Kind.MESSAGE) -> Frame:
        """The next frame, which must be of this kind."""
        frame = await self.frame()
        assert frame is not None, "the gateway closed the connection"
        assert frame.kind == kind, f"{frame} is no {kind!r}"
        return frame

    async def greet(self, service: str = "default", name: str = "") -> Frame:
        """Say CONNECT and hear WELCOME."""
        await self.send(greeting(service, name))
        welcome = await self.next(Kind.WELCOME)
        self.inbox = fields(welcome)["inbox"].encode()
        return welcome

    async def say(self, *said: bytes) -> list[Frame]:
        """Send frames; everything that comes until the gateway has dealt with them."""
        self._pings += 1
        mark = b"%d" % self._pings
        await self.send(b"".join(said) + encode(Kind.PING, body=mark))
        heard: list[Frame] = []
        while (frame := await self.frame()) is not None:
            if (frame.kind, frame.body) == (Kind.PONG, mark):
                return heard
            heard.append(frame)
        return heard

    async def to_the_end(self) -> list[Frame]:
        """Everything that comes until the gateway closes the connection."""
        heard: list[Frame] = []
        while (frame := await self.frame()) is not None:
            heard.append(frame)
        return heard

    def close(self) -> None:
        self._socket.close()


@asynccontextmanager
async def dialled(address: str, receive_buffer: int = 0) -> AsyncIterator[Raw]:
    """A connection that has said nothing yet."""
    raw = await Raw.dial(address, receive_buffer)
    try:
        yield raw
    finally:
        raw.close()


@asynccontextmanager
async def greeted(address: str, service: str = "default", name: str = "") -> AsyncIterator[Raw]:
    """A connection that was welcomed."""
    async with dialled(address) as raw:
        await raw.greet(service, name)
        yield raw


def greeting(service: str = "default", name: str = "", **options: Any) -> bytes:
    body = Message(**options).encode() if options else b""
    return encode(Kind.CONNECT, service.encode(), body, name.encode())


def subscribe(pattern: str, group: str = "", **options: Any) -> bytes:
    body = Message(**options).encode() if options else b""
    return encode(Kind.SUBSCRIBE, pattern.encode(), body, group.encode(), ANSWER)


def unsubscribe(pattern: str, group: str = "", **options: Any) -> bytes:
    body = Message(**options).encode() if options else b""
    return encode(Kind.UNSUBSCRIBE, pattern.encode(), body, group.encode(), ANSWER)


def message(subject: str, body: bytes, reply: bytes = b"", flags: int = 0) -> bytes:
    return encode(Kind.MESSAGE, subject.encode(), body, reply, flags | BARE)


def fields(frame: Frame) -> dict[str, Any]:
    """What the body of a frame says."""
    return Message.from_body(frame.body).to_dict()


def kinds(frames: list[Frame]) -> list[Kind]:
    return [Kind(frame.kind) for frame in frames]


def errors(frames: list[Frame]) -> list[str]:
    """The names of the errors among frames."""
    return [fields(frame)["name"] for frame in frames if frame.kind == Kind.ERROR]


def bodies(frames: list[Frame]) -> list[bytes]:
    """The bodies of the messages among frames."""
    return [frame.body for frame in frames if frame.kind == Kind.MESSAGE]
