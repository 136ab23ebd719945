import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from weft.broker.auth.keys import Keyring
from weft.gateway.front.rejections import Rejections
from weft.gateway.http.response import PageResponse
from weft.gateway.http.server import REQUESTS_MAX, GatewayHttpServer
from weft.transports.http.origins import WebRules

PACKED = "export {};\n" * 100


async def pages(path: str, query: str) -> PageResponse | None:
    if path in ("/closest", "/healthz"):
        return PageResponse(200, f"{query}\n")
    if path == "/file.js":
        return PageResponse(200, "export {};\n", "text/javascript", '"1a"')
    if path in ("/packed.js", "/packed.1a.js"):
        packed, is_immutable = gzip.compress(PACKED.encode()), path == "/packed.1a.js"
        kind = "text/javascript"
        return PageResponse(200, PACKED, kind, '"1a"', gzipped=packed, is_immutable=is_immutable)
    if path == "/long":
        return PageResponse(200, "long " * 100_000)
    return PageResponse(200, f"you asked for {path}\n") if path.startswith("/page") else None


RULES = WebRules(hosts=("127.0.0.1",), origins=("https://pages.example",))


class NoKeys:
    """A gateway that trusts everyone."""

    keyring: Keyring | None = None


class Place:
    def __init__(self) -> None:
        self.refusals = Rejections("london")
        self.web = GatewayHttpServer(pages, self.refusals, RULES, NoKeys())

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


async def test_a_file_may_be_kept_by_its_tag_and_used_by_any_page() -> None:
    async with opened() as place:
        head, _, body = (await place.ask(get("/file.js"))).partition(b"\r\n\r\n")
        for header in (
            b'etag: "1a"',
            b"cache-control: no-cache",
            b"access-control-allow-origin: *",
        ):
            assert header in head.lower()
        assert body == b"export {};\n"


async def test_a_file_that_is_kept_is_not_sent_again() -> None:
    async with opened() as place:
        asked = get("/file.js")[:-2]
        answer = await place.ask(asked + b'If-None-Match: "1a"\r\n\r\n')
        head, _, body = answer.partition(b"\r\n\r\n")
        assert status_in(answer) == 304
        assert b'etag: "1a"' in head.lower()
        assert b"content-length" not in head.lower()
        assert body == b""
        assert status_in(await place.ask(asked + b'If-None-Match: "2b"\r\n\r\n')) == 200


@pytest.mark.parametrize("accepted", ["gzip, br", "identity", ""])
async def test_a_file_is_sent_compressed_to_those_who_take_it(accepted: str) -> None:
    async with opened() as place:
        asked = get("/packed.js")[:-2] + f"Accept-Encoding: {accepted}\r\n".encode()
        head, _, body = (await place.ask(asked + b"\r\n")).partition(b"\r\n\r\n")
        is_packed = accepted.startswith("gzip")
        tag = b'"1a-gzip"' if is_packed else b'"1a"'
        assert (gzip.decompress(body) if is_packed else body) == PACKED.encode()
        assert (b"content-encoding: gzip" in head.lower()) == is_packed
        assert b"vary: accept-encoding" in head.lower()
        assert b"content-length: %d\r\n" % len(body) in head.lower() + b"\r\n"
        assert b"etag: " + tag in head.lower()
        again = await place.ask(asked + b"If-None-Match: " + tag + b"\r\n\r\n")
        assert status_in(again) == 304
        assert b"vary: accept-encoding" in again.lower()
        assert b"content-encoding" not in again.lower()


async def test_a_versioned_file_is_kept_for_ever() -> None:
    async with opened() as place:
        answer = (await place.ask(get("/packed.1a.js"))).lower()
        assert b"cache-control: public, max-age=31536000, immutable" in answer


async def test_a_page_is_not_kept() -> None:
    async with opened() as place:
        answer = (await place.ask(get("/page"))).lower()
        assert b"cache-control: no-store" in answer
        assert b"access-control-allow-origin" not in answer


async def test_a_long_page_arrives_whole() -> None:
    async with opened() as place:
        assert (await place.ask(get("/long"))).endswith(b"\r\n\r\n" + b"long " * 100_000)


async def test_a_page_is_given_its_query() -> None:
    async with opened() as place:
        assert (await place.ask(get("/closest?a=%31&b"))).endswith(b"\r\n\r\na=%31&b\n")


@pytest.mark.parametrize(
    ("origin", "status", "allowed"),
    [
        ("https://pages.example", 200, b"https://pages.example"),
        ("http://localhost", 200, b"http://localhost"),
        ("https://elsewhere.example", 403, b""),
        ("null", 403, b""),
    ],
)
async def test_trusted_origins_may_look_for_gateways(
    origin: str, status: int, allowed: bytes
) -> None:
    async with opened() as place:
        for method in ("GET", "OPTIONS"):
            asked = get("/closest", method)[:-2] + f"Origin: {origin}\r\n\r\n".encode()
            head = (await place.ask(asked)).partition(b"\r\n\r\n")[0].lower()
            wanted = 204 if method == "OPTIONS" and status == 200 else status
            assert status_in(head) == wanted
            assert (b"access-control-allow-origin: " + allowed in head) == (status == 200)
            assert (b"access-control-allow-headers: authorization" in head) == (wanted == 204)
            assert b"content-length" not in head or wanted != 204


async def test_any_page_may_measure_how_far_a_gateway_is() -> None:
    async with opened() as place:
        head = (await place.ask(get("/healthz"))).lower()
        assert b"access-control-allow-origin: *" in head
        assert status_in(await place.ask(get("/page", "OPTIONS"))) == 405


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
        place.web.change(4096, 0.2)
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


async def test_beyond_the_limit_whoever_dawdles_longest_gives_way() -> None:
    async with opened() as place:
        waiting = [place.dial() for _ in range(REQUESTS_MAX)]
        for _, theirs in waiting:
            place.web.take(theirs, "peer")
        assert status_in(await place.ask(get("/page"))) == 200
        assert await asyncio.get_running_loop().sock_recv(waiting[0][0], 1) == b""
        assert place.refusals.counts == {"Overloaded": 1}
        for ours, _ in waiting:
            ours.close()


async def test_beyond_the_limit_whoever_has_its_answer_gives_way_first() -> None:
    async with opened() as place:
        answered, theirs = place.dial()
        waiting = [place.dial() for _ in range(REQUESTS_MAX - 1)]
        for _, peer in waiting:
            place.web.take(peer, "peer")
        answered.send(get("/page"))
        place.web.take(theirs, "peer")
        loop = asyncio.get_running_loop()
        while not (await loop.sock_recv(answered, 65_536)).endswith(b"you asked for /page\n"):
            pass
        assert status_in(await place.ask(get("/page"))) == 200
        assert place.refusals.counts == {}
        for ours in (answered, *(ours for ours, _ in waiting)):
            ours.close()


async def test_no_more_are_answered_at_once_than_the_limit() -> None:
    is_open = asyncio.Event()
    asked: list[str] = []

    async def slow_pages(path: str, _query: str) -> PageResponse:
        asked.append(path)
        await is_open.wait()
        return PageResponse(200, "at last\n")

    place = Place()
    place.web = GatewayHttpServer(slow_pages, place.refusals, RULES, NoKeys())
    loop = asyncio.get_running_loop()
    waiting = [place.dial() for _ in range(REQUESTS_MAX)]
    for ours, theirs in waiting:
        ours.send(get("/page"))
        place.web.take(theirs, "peer")
    # Who is being answered does not make us wait, and so does not give way.
    while len(asked) < REQUESTS_MAX:
        await asyncio.sleep(0)
    ours, theirs = place.dial()
    place.web.take(theirs, "peer")
    assert await loop.sock_recv(ours, 1) == b""
    assert place.refusals.counts == {"Overloaded": 1}
    is_open.set()
    answers = [await loop.sock_recv(peer, 65_536) for peer, _ in waiting]
    assert {status_in(answer) for answer in answers} == {200}
    for each in (ours, *(peer for peer, _ in waiting)):
        each.close()
    await place.web.close()


class Keeping(Place):
    """A place that keeps connections, with a front that finds out what comes next."""

    def __init__(self) -> None:
        super().__init__()
        self.returned: list[bytes] = []
        self.web.on_request = self.take_back

    def take_back(self, sock: socket.socket, peer: str) -> None:
        sock.setblocking(False)
        self.returned.append(sock.recv(1000, socket.MSG_PEEK))
        self.web.take(sock, peer)


async def answers(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The head of an answer and its body, by the length that it gives."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return head, await reader.readexactly(int(length or b"0"))


@asynccontextmanager
async def keeping() -> AsyncIterator[
    tuple[Keeping, asyncio.StreamReader, asyncio.StreamWriter, socket.socket]
]:
    place = Keeping()
    ours, theirs = place.dial()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    yield place, reader, writer, theirs
    writer.close()
    await place.web.close()


async def test_a_connection_is_kept_and_its_next_request_is_looked_at_first() -> None:
    async with keeping() as (place, reader, writer, theirs):
        writer.write(get("/none"))
        place.web.take(theirs, "peer")
        assert status_in((await answers(reader))[0]) == 404
        for number in range(3):
            writer.write(get(f"/page{number}"))
            head, body = await answers(reader)
            assert b"connection:" not in head
            assert body == f"you asked for /page{number}\n".encode()
        assert place.returned == [get("/page0"), get("/page1"), get("/page2")]
        assert place.web.answered == 4


@pytest.mark.parametrize(
    "request_",
    [
        get("/page")[:-2] + b"Connection: close\r\n\r\n",
        b"GET /page HTTP/1.0\r\n\r\n",
        get("/page")[:-2] + b"Content-Length: 2\r\n\r\nhi",
        get("/page")[:-2] + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        get("/page") + get("/page"),
        get("/page", host="evil.example"),
        get("/page", "POST"),
    ],
    ids=["close", "HTTP/1.0", "length", "chunked", "two", "421", "405"],
)
async def test_a_connection_ends_where_the_next_request_is_not_certain(request_: bytes) -> None:
    async with keeping() as (place, reader, writer, theirs):
        writer.write(request_)
        place.web.take(theirs, "peer")
        head, _ = await answers(reader)
        assert b"connection: close" in head
        assert await reader.read() == b""
        assert not place.returned


async def test_a_file_that_the_client_has_does_not_end_the_connection() -> None:
    async with keeping() as (place, reader, writer, theirs):
        writer.write(get("/file.js")[:-2] + b'If-None-Match: "1a"\r\n\r\n')
        place.web.take(theirs, "peer")
        assert status_in((await answers(reader))[0]) == 304
        writer.write(get("/page", "HEAD"))
        assert status_in(await reader.readuntil(b"\r\n\r\n")) == 200
        writer.write(get("/page"))
        assert (await answers(reader))[1] == b"you asked for /page\n"


async def test_a_connection_without_a_next_request_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.gateway.http.server.IDLE_S", 0.1)
    async with keeping() as (place, reader, writer, theirs):
        writer.write(get("/page"))
        place.web.take(theirs, "peer")
        await answers(reader)
        assert await reader.read() == b""
        assert not place.returned


async def test_a_client_that_hangs_up_between_requests_is_no_visitor() -> None:
    async with keeping() as (place, reader, writer, theirs):
        writer.write(get("/page"))
        place.web.take(theirs, "peer")
        await answers(reader)
        writer.write_eof()
        assert await reader.read() == b""
        assert not place.returned
        assert place.refusals.counts == {}


async def test_beyond_the_limit_idle_connections_give_way_and_are_not_counted() -> None:
    async with keeping() as (place, reader, writer, theirs):
        writer.write(get("/page"))
        place.web.take(theirs, "peer")
        await answers(reader)
        waiting = [place.dial() for _ in range(REQUESTS_MAX - 1)]
        for _, peer in waiting:
            place.web.take(peer, "peer")
        asked = get("/page")[:-2] + b"Connection: close\r\n\r\n"
        assert status_in(await place.ask(asked)) == 200
        assert await reader.read() == b""
        assert place.refusals.counts == {}
        for ours, _ in waiting:
            ours.close()


async def test_closing_does_not_wait_for_idle_connections() -> None:
    async with keeping() as (place, reader, writer, theirs):
        writer.write(get("/page"))
        place.web.take(theirs, "peer")
        await answers(reader)
        await place.web.close()
        assert await reader.read() == b""


async def test_closing_ends_requests_that_are_not_complete() -> None:
    place = Place()
    ours, theirs = place.dial()
    place.web.take(theirs, "peer")
    await place.web.close()
    assert await asyncio.get_running_loop().sock_recv(ours, 1) == b""
    ours.close()
