"""HTTP GET from a gateway on a separate connection, bounded in bytes.

The caller bounds the time.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass

from weft.errors import Unreachable
from weft.wire.address import Address

PAGE_MAX_BYTES = 256 << 10
# Limit on the text of an error.
PROBLEM_MAX_BYTES = 1024

_HEAD_MAX_BYTES = 8 << 10
_OK = b"200"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Response with its status and body."""

    status: int
    body: bytes


async def fetch(
    address: Address, target: str, key: str, tls: ssl.SSLContext | None
) -> HttpResponse:
    """GET a target such as `/closest?limit=3`, with the key as a bearer token if there is one.

    Raises:
        Unreachable: No answer, or not HTTP.
    """
    async with _connected(address, tls) as (reader, writer):
        writer.write(_request(address, target, key))
        status = await _status(reader, address)
        await _skip_headers(reader)
        body = await reader.read(PAGE_MAX_BYTES)
        while len(body) < PAGE_MAX_BYTES and (more := await reader.read(PAGE_MAX_BYTES)):
            body += more
        return HttpResponse(status, body[:PAGE_MAX_BYTES])


def problem_in(body: bytes) -> str:
    """Return the error text in the body of a refusal, or the whole body."""
    whole = body[:PROBLEM_MAX_BYTES].decode(errors="replace").strip()
    try:
        said = json.loads(whole)["error"]["text"]
    except (ValueError, LookupError, TypeError, RecursionError):
        said = whole
    return said if isinstance(said, str) else whole


async def round_trip_s(address: Address, tls: ssl.SSLContext | None) -> float:
    """Return the round-trip time of GET /healthz, without the time to connect.

    Raises:
        Unreachable: No answer, or not from a gateway.
    """
    loop = asyncio.get_running_loop()
    async with _connected(address, tls) as (reader, writer):
        began = loop.time()
        writer.write(_request(address, "/healthz", ""))
        status = await _status(reader, address)
        took_s = loop.time() - began
    if status != int(_OK):
        raise Unreachable(f"{address} answers /healthz with {status}")
    return took_s


@contextlib.asynccontextmanager
async def _connected(
    address: Address, tls: ssl.SSLContext | None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    context = (tls or ssl.create_default_context()) if address.is_tls else None
    try:
        reader, writer = await asyncio.open_connection(
            address.host, address.port, ssl=context, limit=_HEAD_MAX_BYTES
        )
        try:
            yield reader, writer
        finally:
            # Nothing is left to send, and the close of the peer is not awaited.
            writer.transport.abort()
    except (OSError, EOFError, ValueError) as error:
        raise Unreachable(
            f"no gateway answers at {address}: {str(error) or 'it closed the connection'}"
        ) from error


def _request(address: Address, target: str, key: str) -> bytes:
    """Return the request; only web addresses get a Host header, which a proxy may need.

    A gateway treats a request without Host as one that no browser was tricked into sending.
    """
    version, headers = ("1.1", f"Host: {_host(address)}\r\n") if address.is_web else ("1.0", "")
    if key:
        headers += f"Authorization: Bearer {key}\r\n"
    return f"GET {target} HTTP/{version}\r\n{headers}Connection: close\r\n\r\n".encode()


def _host(address: Address) -> str:
    return str(address).partition("://")[2]


async def _status(reader: asyncio.StreamReader, address: Address) -> int:
    line = await reader.readline()
    version, _, rest = line.partition(b" ")
    status = rest[: len(_OK)]
    if not version.startswith(b"HTTP/1.") or not status.isdigit():
        raise Unreachable(f"{address} does not speak HTTP")
    return int(status)


async def _skip_headers(reader: asyncio.StreamReader) -> None:
    left = _HEAD_MAX_BYTES
    while left > 0 and (line := await reader.readline()).strip():
        left -= len(line)
