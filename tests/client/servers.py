"""Servers that answer HTTP as a test says, and count who came."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from weft.wire.address import Address


class HttpServer:
    """Answers each request with what `answer` makes of its head, after `delay_s`."""

    def __init__(self, answer: Callable[[str], bytes], delay_s: float = 0.0) -> None:
        self._answer = answer
        self._delay_s = delay_s
        self.heads: list[str] = []
        self.address = Address("", 0, is_tls=False)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            await asyncio.sleep(self._delay_s)
            writer.write(self._answer(head))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            # Whoever asked has had enough.
            return
        finally:
            writer.close()


@asynccontextmanager
async def http_server(
    answer: Callable[[str], bytes], delay_s: float = 0.0
) -> AsyncIterator[HttpServer]:
    """A server on a port of its own."""
    made = HttpServer(answer, delay_s)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.address = Address("127.0.0.1", server.sockets[0].getsockname()[1], is_tls=False)
    try:
        yield made
    finally:
        server.close()


def answered(body: str = "ok\n", status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{body}".encode()
