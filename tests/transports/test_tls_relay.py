import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from weft.errors import ConnectionLost
from weft.gateway.config.settings import Tls
from weft.gateway.front.tls import server_context
from weft.transports import tls_relay as pumping
from weft.transports.tls_relay import Pump

LARGE = bytes(range(256)) * 4 * 4096  # 4 MiB
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


class Client:
    """The peer's side of TLS, which can end its own direction and go on reading."""

    def __init__(self, sock: socket.socket, tls: Tls, version: ssl.TLSVersion) -> None:
        context = ssl.create_default_context(cafile=tls.cert)
        context.minimum_version = context.maximum_version = version
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")

    async def shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
            else:
                await self._flush()
                return

    async def send(self, data: bytes) -> None:
        for start in range(0, len(data), 16384):
            self._tls.write(data[start : start + 16384])
            await self._flush()

    async def end(self) -> None:
        """Say that nothing more will be sent."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.unwrap()
        await self._flush()

    async def receive(self, count: int) -> bytes:
        """So many bytes, or fewer if the other side ends."""
        parts: list[bytes] = []
        while (left := count - sum(map(len, parts))) > 0:
            try:
                part = self._tls.read(left)
                if not part:
                    break
                parts.append(part)
            except ssl.SSLWantReadError:
                await self._fill()
            except ssl.SSLZeroReturnError:
                break
        return b"".join(parts)

    async def _fill(self) -> None:
        data = await self._loop.sock_recv(self._sock, 65536)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    async def _flush(self) -> None:
        await self._loop.sock_sendall(self._sock, self._outgoing.read())


class Line:
    """A client, a pump, and the plain socket at its other end."""

    def __init__(self, tls: Tls, version: ssl.TLSVersion) -> None:
        self.outer, theirs = socket.socketpair()
        inner, self.plain = socket.socketpair()
        self._sockets = [self.outer, theirs, inner, self.plain]
        for sock in self._sockets:
            sock.setblocking(False)
        self.inner = inner
        self.client = Client(self.outer, tls, version)
        self.pump = Pump(theirs, server_context(tls))
        self.loop = asyncio.get_running_loop()

    async def shake_hands(self) -> None:
        await asyncio.gather(self.client.shake_hands(), self.pump.shake_hands())

    async def plain_bytes(self, count: int) -> bytes:
        parts: list[bytes] = []
        while (left := count - sum(map(len, parts))) > 0:
            part = await self.loop.sock_recv(self.plain, min(left, 65536))
            if not part:
                break
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        for sock in self._sockets:
            sock.close()


@asynccontextmanager
async def carrying(
    tls: Tls, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> AsyncIterator[Line]:
    line = Line(tls, version)
    await line.shake_hands()
    task = asyncio.create_task(line.pump.carry(line.inner))
    try:
        yield line
        line.plain.close()
        line.outer.close()
    finally:
        task.cancel()
        await asyncio.wait([task])
        line.close()


@pytest.mark.parametrize("version", VERSIONS)
async def test_bytes_go_both_ways(tls: Tls, version: ssl.TLSVersion) -> None:
    async with carrying(tls, version) as line:
        await line.client.send(b"question")
        assert await line.plain_bytes(8) == b"question"
        await line.loop.sock_sendall(line.plain, b"answer")
        assert await line.client.receive(6) == b"answer"


@pytest.mark.parametrize("version", VERSIONS)
async def test_much_goes_both_ways_at_once_unharmed(tls: Tls, version: ssl.TLSVersion) -> None:
    async with carrying(tls, version) as line, asyncio.TaskGroup() as tasks:
        there = tasks.create_task(line.plain_bytes(len(LARGE)))
        back = tasks.create_task(line.client.receive(len(LARGE)))
        tasks.create_task(line.client.send(LARGE))
        tasks.create_task(line.loop.sock_sendall(line.plain, LARGE))
        assert await there == LARGE
        assert await back == LARGE


async def test_after_the_peer_has_ended_it_still_gets_what_is_sent(tls: Tls) -> None:
    async with carrying(tls) as line:
        await line.client.send(b"question")
        await line.client.end()
        assert await line.plain_bytes(100) == b"question"
        receiving = asyncio.create_task(line.client.receive(len(LARGE) + 1))
        await line.loop.sock_sendall(line.plain, LARGE)
        line.plain.shutdown(socket.SHUT_WR)
        assert await receiving == LARGE


async def test_after_the_plain_side_has_ended_the_peer_is_still_heard(tls: Tls) -> None:
    async with carrying(tls) as line:
        line.plain.shutdown(socket.SHUT_WR)
        assert await line.client.receive(1) == b""
        await line.client.send(b"last words")
        await line.client.end()
        assert await line.plain_bytes(100) == b"last words"


async def test_a_peer_that_hangs_up_without_a_farewell_has_ended_too(tls: Tls) -> None:
    async with carrying(tls) as line:
        await line.client.send(b"last words")
        line.outer.shutdown(socket.SHUT_WR)
        assert await line.plain_bytes(100) == b"last words"


async def test_it_ends_when_both_sides_have(tls: Tls) -> None:
    line = Line(tls, ssl.TLSVersion.TLSv1_3)
    await line.shake_hands()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(line.pump.carry(line.inner))
        await line.client.end()
        line.plain.shutdown(socket.SHUT_WR)
        assert await line.client.receive(1) == b""
    line.close()


async def test_a_peer_that_never_hangs_up_is_not_waited_for_without_end(
    tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pumping, "_LINGER_S", 0.01)
    line = Line(tls, ssl.TLSVersion.TLSv1_3)
    await line.shake_hands()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(line.pump.carry(line.inner))
        line.plain.close()
    line.close()


async def test_a_reader_that_does_not_read_is_not_read_for(tls: Tls) -> None:
    async with carrying(tls) as line:
        sending = asyncio.create_task(line.loop.sock_sendall(line.plain, LARGE * 4))
        # Another pump's traffic goes on, and when it is done, this one's is still held up.
        async with carrying(tls) as other:
            receiving = asyncio.create_task(other.plain_bytes(len(LARGE)))
            await other.client.send(LARGE)
            assert await receiving == LARGE
        assert not sending.done()
        assert await line.client.receive(len(LARGE) * 4) == LARGE * 4
        await sending


async def test_a_broken_connection_ends_it_with_the_reason(tls: Tls) -> None:
    line = Line(tls, ssl.TLSVersion.TLSv1_3)
    await line.shake_hands()
    task = asyncio.create_task(line.pump.carry(line.inner))
    line.outer.send(b"\x17\x03\x03\x00\x10" + bytes(16))
    with pytest.raises(ExceptionGroup) as caught:
        await task
    assert isinstance(caught.value.exceptions[0], ssl.SSLError)
    line.close()


async def test_who_leaves_during_the_handshake_is_said_to_be_lost(tls: Tls) -> None:
    line = Line(tls, ssl.TLSVersion.TLSv1_3)
    line.outer.close()
    with pytest.raises(ConnectionLost, match="closed the connection during the handshake"):
        await line.pump.shake_hands()
    line.close()


async def test_who_speaks_no_tls_fails_the_handshake(tls: Tls) -> None:
    line = Line(tls, ssl.TLSVersion.TLSv1_3)
    line.outer.send(b"\x16\x03\x01\x00\x05hello")
    with pytest.raises(ssl.SSLError):
        await line.pump.shake_hands()
    line.close()


async def test_a_pump_can_be_the_client_of_another(tls: Tls) -> None:
    first, second = socket.socketpair()
    first.setblocking(False)
    second.setblocking(False)
    with first, second:
        server = Pump(first, server_context(tls))
        client = Pump(second, ssl.create_default_context(cafile=tls.cert), "127.0.0.1")
        await asyncio.gather(server.shake_hands(), client.shake_hands())


@pytest.mark.parametrize("host", ["other.example", "127.0.0.2"])
async def test_a_client_wants_the_certificate_of_its_host(tls: Tls, host: str) -> None:
    first, second = socket.socketpair()
    first.setblocking(False)
    second.setblocking(False)
    with first, second:
        server = Pump(first, server_context(tls))
        client = Pump(second, ssl.create_default_context(cafile=tls.cert), host)
        results = await asyncio.gather(
            server.shake_hands(), client.shake_hands(), return_exceptions=True
        )
    assert isinstance(results[1], ssl.SSLCertVerificationError)
