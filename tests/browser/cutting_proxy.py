"""A TCP proxy before a gateway that does what networks do: it blocks, and it cuts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

NO_WEBSOCKET = b"Upgrade: websocket"
NO_STREAM = b"format=sse"
# What a network does not let pass, by the transport that is left then.
BLOCKED: dict[str, tuple[bytes, ...]] = {
    "websocket": (),
    "sse": (NO_WEBSOCKET,),
    "poll": (NO_WEBSOCKET, NO_STREAM),
}

_READ_BYTES = 1 << 16


class CuttingProxy:
    """What passes through it, and what does not."""

    def __init__(self, target: str) -> None:
        self._host, _, self._port = target.rpartition(":")
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self.address = ""
        # Requests with this in their head end here.
        self.blocked: tuple[bytes, ...] = ()
        # Answers to requests with this in their head are gathered, and never passed on.
        self.swallowed: tuple[bytes, ...] = ()
        self.cuts = 0

    def cut(self) -> None:
        """Cut every connection without a word."""
        self.cuts += 1
        for pair in list(self._pairs):
            for writer in pair:
                writer.transport.abort()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on."""
        with suppress(OSError, asyncio.IncompleteReadError):
            far_reader, far_writer = await asyncio.open_connection(self._host, int(self._port))
            pair = (writer, far_writer)
            self._pairs.add(pair)
            swallowing = asyncio.Event()
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._up(reader, pair, swallowing))
                    group.create_task(self._down(far_reader, pair, swallowing))
            finally:
                self._pairs.discard(pair)
                for each in pair:
                    each.transport.abort()

    async def _up(
        self,
        reader: asyncio.StreamReader,
        pair: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
        swallowing: asyncio.Event,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_READ_BYTES):
                if any(each in data for each in self.blocked):
                    break
                if any(each in data for each in self.swallowed):
                    swallowing.set()
                pair[1].write(data)
        for writer in pair:
            writer.transport.abort()

    async def _down(
        self,
        reader: asyncio.StreamReader,
        pair: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
        swallowing: asyncio.Event,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_READ_BYTES):
                if not swallowing.is_set():
                    pair[0].write(data)
        for writer in pair:
            writer.transport.abort()


@asynccontextmanager
async def proxy_before(target: str) -> AsyncIterator[CuttingProxy]:
    """A proxy before the gateway at an address."""
    proxy = CuttingProxy(target)
    server = await asyncio.start_server(proxy.take, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    proxy.address = f"{host}:{port}"
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await server.wait_closed()
