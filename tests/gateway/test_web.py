import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from weft.gateway.refusals import Refusals
from weft.gateway.web import REQUESTS_MAX, Page, Web


async def pages(path: str) -> Page | None:
    if path == "/long":
        return Page(200, "long " * 100_000)
    return Page(200, f"you asked for {path}\n") if path.startswith("/page") else None


class Place:
    def __init__(self) -> None:
        self.refusals = Refusals("london")
        self.web = Web(pages, self.refusals, "127.0.0.1")

    def dial(self) -> tuple[socket.socket, socket.socket]:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        return ours, theirs

    async def ask(self, request: bytes) -> bytes:
        """Everything that is answered until the connection ends."""
        ours, theirs = self.dial()
        self.web.take(theirs, "peer")
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer


@asynccontextmanager
async def opened() -> AsyncIterator[Place]:
    place = Place()
    yield place
    await place.web.close()


def get(target: str, method: str = "GET", host: str = "localhost") -> bytes:
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def status_in(answer: bytes) -> int:
    return int(answer.split()[1])


async def test_a_page_is_answered_and_the_connection_ends() -> None:
    async with opened() as place:
        head, _, body = (await place.ask(get("/page?x=1"))).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in head.lower()
        assert b"content-type: text/plain; charset=utf-8" in head.lower()
        assert body == b"you asked for /page\n"
        assert place.web.answered == 1


async def test_head_is_answered_like_get_without_the_body() -> None:
    async with opened() as place:
        head, _, body = (await place.ask(get("/page", "HEAD"))).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"content-length: 20" in head.lower()
        assert body == b""


async def test_a_long_page_arrives_whole() -> None:
    async with opened() as place:
        assert (await place.ask(get("/long"))).endswith(b"\r\n\r\n" + b"long " * 100_000)


async def test_a_request_may_come_byte_by_byte() -> None:
    async with opened() as place:
        ours, theirs = place.dial()
        place.web.take(theirs, "peer")
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        for byte in get("/page"):
            writer.write(bytes([byte]))
            await writer.drain()
        assert status_in(await reader.read()) == 200
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/none"), 404),
        (get("/page", "POST"), 405),
        (get("/page", "DELETE"), 405),
        (get("/" + "x" * 2048), 414),
        (get("/" + "x" * 20_000), 414),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000, 431),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
        (get("http://localhost/page"), 400),
        (get("*"), 400),
        (get("/page", host="example.com"), 421),
        (get("/page", host="example.com:7411"), 421),
        (get("/page", host="127.0.0.1.example.com"), 421),
        (get("/page", host="[2001:db8::1]:7411"), 421),
        (get("/page", host=""), 421),
    ],
)
async def test_a_wrong_request_gets_the_status_that_says_so(request_: bytes, status: int) -> None:
    async with opened() as place:
        assert status_in(await place.ask(request_)) == status


async def test_only_what_is_allowed_is_said_to_be() -> None:
    async with opened() as place:
        assert b"Allow: GET, HEAD" in await place.ask(get("/page", "PUT"))


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1:7411", "127.9.9.9", "[::1]", "[::1]:7411"]
)
async def test_loopback_goes_by_many_names(host: str) -> None:
    async with opened() as place:
        assert status_in(await place.ask(get("/page", host=host))) == 200


async def test_a_client_too_old_to_name_the_host_is_answered() -> None:
    async with opened() as place:
        assert status_in(await place.ask(b"GET /page HTTP/1.0\r\n\r\n")) == 200


async def test_a_body_that_nobody_asked_for_does_not_cut_off_the_answer() -> None:
    async with opened() as place:
        request = b"GET /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n"
        assert status_in(await place.ask(request + b"x" * 50_000)) == 200


async def test_a_request_that_takes_too_long_is_told_so_and_counted() -> None:
    async with opened() as place:
        place.web.change(4096, 0.01)
        assert status_in(await place.ask(b"GET / HT")) == 408
        assert place.refusals.counts == {"TooSlow": 1}


async def test_who_leaves_before_the_request_is_whole_gets_no_answer() -> None:
    async with opened() as place:
        ours, theirs = place.dial()
        ours.sendall(b"GET / HT")
        ours.shutdown(socket.SHUT_WR)
        place.web.take(theirs, "peer")
        answer = await asyncio.get_running_loop().sock_recv(ours, 1000)
        assert answer == b"" or status_in(answer) == 400
        ours.close()


async def test_no_more_are_answered_at_once_than_the_limit() -> None:
    async with opened() as place:
        waiting = [place.dial() for _ in range(REQUESTS_MAX)]
        for _, theirs in waiting:
            place.web.take(theirs, "peer")
        ours, theirs = place.dial()
        place.web.take(theirs, "peer")
        assert await asyncio.get_running_loop().sock_recv(ours, 1) == b""
        assert place.refusals.counts == {"Overloaded": 1}
        for sock in (ours, *(peer for peer, _ in waiting)):
            sock.close()


async def test_closing_ends_requests_that_are_not_complete() -> None:
    place = Place()
    ours, theirs = place.dial()
    place.web.take(theirs, "peer")
    await place.web.close()
    assert await asyncio.get_running_loop().sock_recv(ours, 1) == b""
    ours.close()
