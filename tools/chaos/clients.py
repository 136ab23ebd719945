"""A client made of a socket and frames, which comes back when its gateway does."""

import asyncio
from typing import Any, cast

from tools.chaos.book import Book
from tools.chaos.gateways import SERVICE, Gateway

from weft.wire.frames import Decoder, Kind, encode, parse
from weft.wire.message.message import Message

BODY_BYTES = 1 << 20
# A client that finds nobody tries again after this.
RETRY_S = 0.05
# A gateway that stands still welcomes nobody, but not for ever.
WELCOME_S = 60.0
WAIT_S = 60.0
# What waits to be written may be so much; beyond that nothing more is said.
BUFFER_BYTES = 1 << 20

_MESSAGE = int(Kind.MESSAGE)


class Client(asyncio.Protocol):
    """One client of a gateway, by one connection after the other."""

    def __init__(self, name: str, gateway: Gateway, book: Book) -> None:
        self.name = name
        self.gateway = gateway
        self.book = book
        # The number of the gateway in its present life, and the inbox here.
        self.origin = 0
        self.inbox = b""
        self.is_connected = False
        self.is_over = False
        self._transport: asyncio.Transport | None = None
        self._decoder = Decoder(BODY_BYTES)
        self._welcome: asyncio.Future[None] | None = None
        self._ended = asyncio.Event()
        self._pongs: dict[bytes, asyncio.Future[None]] = {}

    # What the different kinds of clients do.

    def begin(self) -> None:
        """It is connected."""

    def hear(self, frame: bytes) -> None:
        """A message came."""

    def hear_other(self, frame: bytes) -> None:
        """Something else came: an OK, an ERROR or a GAP."""

    def end(self) -> None:
        """The connection is over."""

    # What they have in common.

    async def keep(self) -> None:
        """Be connected, again and again, until the run is over."""
        loop = asyncio.get_running_loop()
        while not self.is_over:
            self._decoder = Decoder(BODY_BYTES)
            self._ended.clear()
            self._welcome = loop.create_future()
            try:
                host, port = self.gateway.address
                await loop.create_connection(lambda: self, host, port)
                async with asyncio.timeout(WELCOME_S):
                    await self._welcome
            except OSError:
                if self._transport is not None:
                    self._transport.abort()
                await asyncio.sleep(RETRY_S)
                continue
            await self._ended.wait()

    def send(self, data: bytes) -> None:
        """Say something; into the void if there is no connection."""
        if self._transport is not None:
            self._transport.write(data)

    @property
    def is_free(self) -> bool:
        """Say if it is connected, and not much waits to be written."""
        transport = self._transport
        if transport is None or not self.is_connected:
            return False
        return transport.get_write_buffer_size() < BUFFER_BYTES

    def drop(self) -> None:
        """End the connection from here."""
        if self._transport is not None:
            self._transport.abort()

    async def flush(self) -> None:
        """Wait until the gateway has dealt with all that was said, and sent all that it owes.

        Raises:
            TimeoutError: it does not come to that.
        """
        mark = b"flush %d" % len(self._pongs)
        pong = self._pongs[mark] = asyncio.get_running_loop().create_future()
        self.send(encode(Kind.PING, body=mark))
        async with asyncio.timeout(WAIT_S):
            await pong

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        # uvloop's is none, but does the same.
        self._transport = cast("asyncio.Transport", transport)
        options = {"key": self.gateway.key} if self.gateway.key else {}
        body = Message(**options).encode() if options else b""
        self.send(encode(Kind.CONNECT, SERVICE.encode(), body, self.name.encode()))

    def data_received(self, data: bytes) -> None:
        """Take in what came."""
        self._decoder.feed(data)
        while (frame := self._decoder.next_frame()) is not None:
            if frame[4] == _MESSAGE:
                self.hear(frame)
            else:
                self._hear_control(frame)

    def connection_lost(self, error: Exception | None) -> None:
        """Take note that it is over."""
        self._transport = None
        if self._welcome is not None and not self._welcome.done():
            self._welcome.set_exception(error or ConnectionResetError("nobody is welcome"))
        if self.is_connected:
            self.is_connected = False
            self.end()
        self._ended.set()

    def _hear_control(self, frame: bytes) -> None:
        said = parse(frame)
        match said.kind:
            case Kind.WELCOME:
                self.origin = said.origin
                self.inbox = fields(frame)["inbox"].encode()
                self.is_connected = True
                if self._welcome is not None and not self._welcome.done():
                    self._welcome.set_result(None)
                self.begin()
            case Kind.PING:
                self.send(encode(Kind.PONG, body=said.body))
            case Kind.PONG:
                pong = self._pongs.get(said.body)
                if pong is not None and not pong.done():
                    pong.set_result(None)
            case Kind.GOODBYE:
                self.book.ends[f"goodbye {fields(frame)['reason']}"] += 1
            case _:
                self.hear_other(frame)


def fields(frame: bytes) -> dict[str, Any]:
    """What the body of a frame says."""
    return Message.from_body(parse(frame).body).to_dict()
