import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from select import select

import pytest

from weft.broker.limits import Limits
from weft.errors import NoSuchService
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import Settings
from weft.gateway.front.fd_limits import ConnectionLimits
from weft.gateway.front.fd_passing import AS_FRAMES, AS_LINK
from weft.gateway.front.front import Front, TlsTermination
from weft.gateway.front.rejections import Rejections
from weft.gateway.http.report import ServiceReport
from weft.gateway.keys.key_file import Records
from weft.gateway.mesh.membership import MeshMembership
from weft.gateway.service_pool_api import Fulfil
from weft.mesh.candidates import Candidate
from weft.wire.frames import Decoder, Kind, encode
from weft.wire.message.message import Message

CONNECT = encode(Kind.CONNECT, b"weather", reply=b"me.1")
HELLO = b"\x16\x03\x01\x00\x05hello"
ROOM = ConnectionLimits(connections=100, pending=100)


class Taken:
    """Stands where services, HTTP and TLS are: keeps what it is given."""

    def __init__(self) -> None:
        self.sockets: asyncio.Queue[tuple[str, socket.socket]] = asyncio.Queue()
        self.connections = 0
        self.not_up: list[str] = []
        self.silent: list[str] = []
        self.ways: list[int] = []
        self.on_return: Callable[[int], None] | None = None
        self.membership: MeshMembership | None = None
        self.fulfil: Fulfil | None = None

    async def start(self) -> None: ...

    def change(self, settings: Settings) -> None: ...

    def set_keys(self, keys: Records | None) -> None: ...

    async def report(self) -> dict[str, ServiceReport]:
        return {}

    @property
    def running(self) -> list[str]:
        return []

    async def nodes(self, service: str) -> tuple[Candidate, ...] | None:
        raise NoSuchService(service)

    async def drain(self, within_s: float) -> None: ...

    async def close(self) -> None: ...

    def has(self, service: str) -> bool:
        return service != "new"

    def end_idle(self) -> None: ...

    def give(self, service: str, fd: int, way: int = AS_FRAMES) -> None:
        self.ways.append(way)
        if service == "unknown":
            raise NoSuchService("there is none")
        self.connections += 1
        self.sockets.put_nowait((service, socket.socket(fileno=fd)))


class Web:
    def __init__(self) -> None:
        self.sockets: asyncio.Queue[socket.socket] = asyncio.Queue()
        self.on_request: Callable[[socket.socket, str], None] | None = None

    def take(self, sock: socket.socket, _peer: str) -> None:
        self.sockets.put_nowait(sock)


class Unwrapping:
    """Speaks no TLS: what follows the hello is taken for decrypted."""

    def take(
        self, sock: socket.socket, peer: str, enter: Callable[[socket.socket, str], None]
    ) -> None:
        assert sock.recv(len(HELLO)) == HELLO
        enter(sock, peer)


class Place:
    """A front, and everything around it."""

    def __init__(self, encryption: TlsTermination | None = None) -> None:
        self.services = Taken()
        self.web = Web()
        self.refusals = Rejections("london")
        self.front = Front(self.services, self.refusals, self.web, encryption)

    async def dial(self, data: bytes = b"") -> "Peer":
        reader, writer = await asyncio.open_connection(*self.front.address)
        writer.write(data)
        return Peer(reader, writer)

    async def taken(self) -> tuple[str, bytes]:
        """The next service that was given a socket, and what can be read from it."""
        service, sock = await self.services.sockets.get()
        with sock:
            return service, sock.recv(1000)


class Peer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def refusal(self) -> str:
        """The name of the error that it is told before the connection ends."""
        decoder = Decoder()
        decoder.feed(await self.reader.read())
        frame = decoder.next_frame()
        assert frame is not None
        assert frame[4] == Kind.ERROR
        return Message.from_frame(frame).get_string("name")

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@asynccontextmanager
async def opened(
    room: ConnectionLimits = ROOM,
    greeting_s: float = 60.0,
    encryption: TlsTermination | None = None,
) -> AsyncIterator[Place]:
    place = Place(encryption)
    limits = Limits(greeting_s=greeting_s)
    place.front.open(Settings(listen="127.0.0.1:0", limits=limits), room)
    try:
        yield place
    finally:
        place.front.close()


@pytest.mark.req("MM-13", "MM-15")
async def test_a_greeting_is_handed_over_with_every_byte_unread() -> None:
    async with opened() as place:
        peer = await place.dial(CONNECT + b"and what follows")
        assert await place.taken() == ("weather", CONNECT + b"and what follows")
        await peer.close()


@pytest.mark.req("MM-8")
async def test_a_greeting_may_come_byte_by_byte() -> None:
    async with opened() as place:
        peer = await place.dial()
        for byte in CONNECT:
            peer.writer.write(bytes([byte]))
            await peer.writer.drain()
        assert await place.taken() == ("weather", CONNECT)
        await peer.close()


async def test_a_peer_may_end_its_side_once_it_has_greeted() -> None:
    async with opened() as place:
        peer = await place.dial(CONNECT)
        peer.writer.write_eof()
        assert await place.taken() == ("weather", CONNECT)
        await peer.close()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ((4).to_bytes(4, "little"), "BadFrame"),
        ((1 << 31).to_bytes(4, "little"), "FrameTooBig"),
        (encode(Kind.MESSAGE, b"weather"), "BadGreeting"),
        (encode(Kind.CONNECT, b"_WEFT"), "BadGreeting"),
        (encode(Kind.CONNECT, b"unknown"), "NoSuchService"),
        (HELLO, "BadGreeting"),
    ],
)
@pytest.mark.req("MM-10")
async def test_whoever_is_refused_is_told_why_and_counted(data: bytes, name: str) -> None:
    async with opened() as place:
        peer = await place.dial(data)
        assert await peer.refusal() == name
        assert place.refusals.counts == {name: 1}
        assert place.front.pending == 0
        await peer.close()


@pytest.mark.parametrize("data", [b"", b"abc", CONNECT[:-1]])
async def test_whoever_takes_too_long_is_told_so(data: bytes) -> None:
    async with opened(greeting_s=0.01) as place:
        peer = await place.dial(data)
        assert await peer.refusal() == "TooSlow"
        await peer.close()


@pytest.mark.parametrize("data", [b"abc", CONNECT[:-1]])
async def test_half_a_greeting_with_an_end_is_refused(data: bytes) -> None:
    async with opened() as place:
        peer = await place.dial(data)
        peer.writer.write_eof()
        assert await peer.refusal() == "BadGreeting"
        await peer.close()


async def test_whoever_leaves_without_a_word_is_counted() -> None:
    async with opened() as place:
        peer = await place.dial()
        peer.writer.write_eof()
        assert await peer.reader.read() == b""
        assert place.refusals.counts == {"left": 1}
        await peer.close()


async def test_whoever_resets_the_connection_is_counted() -> None:
    async with opened() as place:
        with socket.create_connection(place.front.address) as sock:
            while not place.front.pending:
                await asyncio.sleep(0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        while not place.refusals.counts:
            await asyncio.sleep(0)
        assert place.refusals.counts == {"left": 1}


async def test_http_goes_to_the_web_unread() -> None:
    async with opened() as place:
        peer = await place.dial(b"GET / HTTP/1.1\r\n")
        with await place.web.sockets.get() as sock:
            assert sock.recv(100) == b"GET / HTTP/1.1\r\n"
        await peer.close()


async def test_what_follows_an_answer_is_looked_at_before_it_is_passed_on() -> None:
    async with opened() as place:
        peer = await place.dial(b"GET / HTTP/1.1\r\n")
        sock = await place.web.sockets.get()
        sock.recv(100)
        request = b"GET /weather/ws HTTP/1.1\r\nHost: localhost\r\n\r\n"
        peer.writer.write(request)
        while not select([sock], [], [], 0)[0]:
            await asyncio.sleep(0)
        assert place.web.on_request is not None
        place.web.on_request(sock, "peer")
        assert await place.taken() == ("weather", request)
        await peer.close()


async def test_with_tls_what_is_in_it_is_looked_at_in_turn() -> None:
    async with opened(encryption=Unwrapping()) as place:
        peer = await place.dial(HELLO + CONNECT)
        assert await place.taken() == ("weather", CONNECT)
        await peer.close()


@pytest.mark.parametrize("data", [CONNECT, b"GET / HTTP/1.1\r\n"])
async def test_with_tls_nothing_else_is_let_in(data: bytes) -> None:
    async with opened(encryption=Unwrapping()) as place:
        peer = await place.dial(data)
        assert await peer.refusal() == "BadGreeting"
        await peer.close()


async def test_over_the_limit_of_connections_one_more_is_refused() -> None:
    async with opened(ConnectionLimits(connections=1, pending=100)) as place:
        first = await place.dial(CONNECT)
        await place.taken()
        second = await place.dial(CONNECT)
        assert await second.refusal() == "Overloaded"
        place.services.connections = 0
        third = await place.dial(CONNECT)
        assert await place.taken() == ("weather", CONNECT)
        for peer in (first, second, third):
            await peer.close()


async def test_when_the_lobby_is_full_the_oldest_gives_way() -> None:
    async with opened(ConnectionLimits(connections=100, pending=2)) as place:
        silent = []
        for count in (1, 2):
            silent.append(await place.dial())
            while place.front.pending < count:
                await asyncio.sleep(0)
        speaking = await place.dial(CONNECT)
        assert await place.taken() == ("weather", CONNECT)
        third = await place.dial(b"abc")
        assert await silent[0].refusal() == "Overloaded"
        assert place.front.pending == 2
        for peer in (*silent, speaking, third):
            await peer.close()


@pytest.mark.req("HUB-19")
async def test_a_thousand_who_say_nothing_do_not_keep_out_one_who_speaks() -> None:
    async with opened(ConnectionLimits(connections=100, pending=1000)) as place:
        silent = []
        for _ in range(1000):
            sock = socket.socket()
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, place.front.address)
            silent.append(sock)
        peer = await place.dial(CONNECT)
        assert await place.taken() == ("weather", CONNECT)
        await peer.close()
        for sock in silent:
            sock.close()


async def test_many_who_dawdle_are_all_refused_and_others_are_served_meanwhile() -> None:
    async with opened(greeting_s=0.01) as place:
        slow = [await place.dial(CONNECT[:-1]) for _ in range(50)]
        peer = await place.dial(CONNECT)
        assert await place.taken() == ("weather", CONNECT)
        assert [await each.refusal() for each in slow] == ["TooSlow"] * 50
        for each in (*slow, peer):
            await each.close()


async def test_closing_refuses_who_waits_and_who_has_just_come() -> None:
    async with opened() as place:
        waiting = await place.dial(b"abc")
        while not place.front.pending:
            await asyncio.sleep(0)
        silent = socket.create_connection(place.front.address)
        speaking = socket.create_connection(place.front.address)
        with silent, speaking:
            speaking.sendall(CONNECT)
            place.front.close()
            assert await waiting.refusal() == "Draining"
            assert place.refusals.counts == {"Draining": 3}
            assert not place.front.is_open
        await waiting.close()


async def test_new_limits_hold_for_who_comes_next(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "weft")
    async with opened() as place:
        limits = Limits(greeting_s=0.01)
        place.front.change(Settings(listen="127.0.0.1:0", limits=limits), ROOM)
        peer = await place.dial()
        assert await peer.refusal() == "TooSlow"
        assert "not complete after 0.01 s" in caplog.text
        await peer.close()


LINK = encode(Kind.LINK, b"weather", b"hello")


@pytest.mark.req("MM-12")
async def test_another_gateway_is_handed_over_like_a_client_and_named_as_what_it_is() -> None:
    async with opened() as place:
        peer = await place.dial(LINK)
        assert await place.taken() == ("weather", LINK)
        assert place.services.ways == [AS_LINK]
        await peer.close()


def from_afar(place: Place, data: bytes) -> socket.socket:
    """Somebody at another machine, as far as the front can tell."""
    ours, theirs = socket.socketpair()
    ours.send(data)
    theirs.setblocking(False)
    place.front.enter(theirs, "192.0.2.1:4711")
    return ours


async def test_a_link_from_another_machine_needs_tls() -> None:
    async with opened() as place:
        with from_afar(place, LINK) as ours:
            told = Message.from_frame(ours.recv(1000))
        assert told.get_string("name") == "NotAllowed"
        assert "mesh.plain" in told.get_string("text")
        assert place.services.ways == []


async def test_a_client_from_another_machine_does_not() -> None:
    async with opened() as place:
        with from_afar(place, CONNECT):
            assert await place.taken() == ("weather", CONNECT)


async def test_a_link_by_tls_may_come_from_anywhere() -> None:
    async with opened(encryption=Unwrapping()) as place:
        with from_afar(place, LINK):
            assert await place.taken() == ("weather", LINK)


async def test_a_link_from_another_machine_is_taken_where_that_is_allowed() -> None:
    async with opened() as place:
        mesh = MeshSettings(plain="allowed")
        place.front.change(Settings(listen="127.0.0.1:0", mesh=mesh), ROOM)
        with from_afar(place, LINK):
            assert await place.taken() == ("weather", LINK)


async def test_a_request_for_a_service_that_does_not_run_is_given_with_its_whole_head() -> None:
    async with opened() as place:
        peer = await place.dial(b"GET /weather/ws HTTP/1.1\r\n")
        assert (await place.taken())[0] == "weather"
        await peer.close()
        head = [b"GET /new/ws HTTP/1.1\r\n", b"Host: localhost\r\n", b"\r\n"]
        peer = await place.dial(head[0])
        while place.front.pending == 0:
            await asyncio.sleep(0.001)
        peer.writer.write(head[1])
        await asyncio.sleep(0.01)
        assert place.services.sockets.empty()
        peer.writer.write(head[2])
        assert await place.taken() == ("new", b"".join(head))
        await peer.close()


async def test_a_head_that_is_over_the_limit_or_has_ended_is_given_as_it_is() -> None:
    async with opened() as place:
        for head in (b"GET /new/ws HTTP/1.1\r\nX: " + b"x" * 5000, b"GET /new/ws HTTP/1.1\r\n"):
            peer = await place.dial(head)
            peer.writer.write_eof()
            assert await place.taken() == ("new", head[:1000])
            await peer.close()


async def test_a_head_that_does_not_end_is_given_up() -> None:
    async with opened(greeting_s=0.01) as place:
        peer = await place.dial(b"GET /new/ws HTTP/1.1\r\n")
        answer = await peer.reader.read()
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"text":"the request took too long"' in answer
        assert place.refusals.counts == {"TooSlow": 1}
        assert place.services.sockets.empty()
        await peer.close()
