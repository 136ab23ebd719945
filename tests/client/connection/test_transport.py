import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from weft.client.connection import transport as line_module
from weft.client.connection.transport import SocketTransport, dial
from weft.errors import Unreachable
from weft.wire.address import Address, addresses_from

Scripted = Callable[[], AbstractAsyncContextManager[Any]]


class Owner:
    """Keeps what a line says."""

    def __init__(self) -> None:
        self.data = b""
        self.arrived = asyncio.Event()
        self.emptied = asyncio.Event()
        self.lines: list[SocketTransport] = []

    def received(self, _: SocketTransport, data: memoryview) -> None:
        self.data += data
        self.arrived.set()

    def writable(self, _: SocketTransport) -> None:
        self.emptied.set()

    def ended(self, line: SocketTransport, _: Exception | None) -> None:
        self.lines.append(line)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.read(100))
    writer.close()
    await writer.wait_closed()


def address_of(server: asyncio.Server, *, is_tls: bool = False) -> Address:
    return Address("127.0.0.1", server.sockets[0].getsockname()[1], is_tls)


async def test_bytes_go_both_ways_until_the_end() -> None:
    owner = Owner()
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        line = await dial(address_of(server), None, owner)
        line.write(b"hello")
        await line.ended
    assert owner.data == b"hello"
    assert owner.lines == [line]
    line.write(b"after the end")
    line.rest(True)
    line.abort()


async def test_where_nobody_listens_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", taken.getsockname()[1], False)
        with pytest.raises(
            Unreachable, match=f"no gateway answers at {address}: Connection refused$"
        ):
            await dial(address, None, Owner())


async def test_a_line_can_be_ended_from_here() -> None:
    owner = Owner()
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        line = await dial(address_of(server), None, owner)
        line.abort()
        await line.ended
    assert owner.lines == [line]


@asynccontextmanager
async def owing() -> AsyncIterator[SocketTransport]:
    """A line whose other end takes nothing of what it is owed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        line = await dial(Address("127.0.0.1", listening.getsockname()[1], False), None, Owner())
        while not line.unsent_bytes:
            line.write(bytes(1 << 20))
        yield line


async def test_a_line_is_left_when_nothing_of_what_is_owed_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line_module, "PARTING_S", 0.0)
    async with owing() as line:
        line.leave(60.0)
        async with asyncio.timeout(10):
            await line.ended
        assert line.unsent_bytes > 0


@pytest.mark.parametrize(("left_s", "is_left"), [(60.0, False), (0.0, True)])
async def test_a_line_that_is_being_emptied_is_not_left_before_its_time(
    left_s: float, is_left: bool
) -> None:
    async with owing() as line:
        transport = line._transport
        assert transport is not None
        line._leave(line.unsent_bytes + 1, asyncio.get_running_loop().time() + left_s)
        assert transport.is_closing() == is_left
        line.abort()
        await line.ended


async def test_a_resting_line_reads_nothing_until_it_wakes(scripted: Scripted) -> None:
    async with scripted() as gateway:
        owner = Owner()
        line = await dial(addresses_from(gateway.address)[0], None, owner)
        line.rest(True)
        line.rest(True)
        line.write(b"x" * 100)
        peer = await gateway._arrived.get()
        peer.writer.write(b"hello")
        await peer.writer.drain()
        # The echo of what the peer reads now would have come after what it wrote before.
        await peer.reader.readexactly(100)
        assert owner.data == b""
        line.rest(False)
        await owner.arrived.wait()
        assert owner.data == b"hello"
        line.abort()


async def test_a_peer_that_does_not_read_blocks_the_line(scripted: Scripted) -> None:
    async with scripted() as gateway:
        owner = Owner()
        line = await dial(addresses_from(gateway.address)[0], None, owner)
        peer = await gateway._arrived.get()
        size = 0
        while not line.is_blocked:
            line.write(b"x" * 65536)
            size += 65536
        assert not owner.emptied.is_set()
        await peer.reader.readexactly(size)
        await owner.emptied.wait()
        line.abort()


async def test_what_the_socket_does_not_take_at_once_follows_in_order(scripted: Scripted) -> None:
    async with scripted() as gateway:
        line = await dial(addresses_from(gateway.address)[0], None, Owner())
        peer = await gateway._arrived.get()
        room = bytearray(1 << 20)
        said = bytearray()
        for number in range(16):
            room[:] = bytes([number]) * len(room)
            line.write(memoryview(room))
            said += room
        # Nothing of it is kept: whoever wrote may write something else there.
        room[:] = bytes(len(room))
        assert await peer.reader.readexactly(len(said)) == said
        line.abort()
        await line.ended


async def test_what_is_written_while_a_line_ends_goes_nowhere(scripted: Scripted) -> None:
    async with scripted() as gateway:
        owner = Owner()
        line = await dial(addresses_from(gateway.address)[0], None, owner)
        peer = await gateway._arrived.get()
        line.abort()
        line.write(b"too late")
        await line.ended
        assert await peer.reader.read() == b""


async def test_many_who_write_while_a_line_ends_fill_no_log(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    async with scripted() as gateway:
        line = await dial(addresses_from(gateway.address)[0], None, Owner())
        await gateway._arrived.get()
        line.abort()
        for _ in range(50):
            line.write(b"too late")
        await line.ended
    assert caplog.messages == []


async def test_a_write_to_a_broken_socket_ends_the_line(scripted: Scripted) -> None:
    async with scripted() as gateway:
        owner = Owner()
        line = await dial(addresses_from(gateway.address)[0], None, owner)
        peer = await gateway._arrived.get()
        peer.writer.transport.abort()
        while not line.ended.done():
            line.write(b"x")
            await asyncio.sleep(0)
        assert owner.lines == [line]


def trusting(certificates: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificates / "first.pem")


async def tls_server(certificates: Path) -> asyncio.Server:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "first.pem", certificates / "first.key")
    return await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context)


async def test_a_tls_address_is_spoken_to_through_tls(certificates: Path) -> None:
    owner = Owner()
    async with await tls_server(certificates) as server:
        address = Address("localhost", address_of(server).port, True)
        line = await dial(address, trusting(certificates), owner)
        line.write(b"secret")
        await line.ended
    assert owner.data == b"secret"


async def test_a_certificate_that_nobody_vouches_for_is_refused(certificates: Path) -> None:
    async with await tls_server(certificates) as server:
        with pytest.raises(Unreachable, match="cannot be trusted: self-signed"):
            await dial(address_of(server, is_tls=True), None, Owner())


async def plain(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()
    await writer.wait_closed()


async def test_where_no_tls_is_spoken_is_said() -> None:
    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        with pytest.raises(Unreachable, match="does not speak TLS"):
            await dial(address_of(server, is_tls=True), None, Owner())


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "a\0b"])
async def test_a_name_that_cannot_be_looked_up_is_unreachable(host: str) -> None:
    with pytest.raises(Unreachable, match="no gateway answers"):
        await dial(Address(host, 7411, False), None, Owner())
