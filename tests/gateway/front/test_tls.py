import asyncio
import logging
import socket
import ssl
import struct
from pathlib import Path

import pytest

from weft.errors import BadOption
from weft.gateway.config.settings import Tls
from weft.gateway.front.rejections import Rejections
from weft.gateway.front.tls import TlsConnections, server_context


def client_context(tls: Tls) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=tls.cert)


def made(
    tls: Tls, limit_s: float = 60.0, pending_max: int = 100
) -> tuple[TlsConnections, Rejections]:
    refusals = Rejections("london")
    encryption = TlsConnections(tls, refusals)
    encryption.change(limit_s, pending_max)
    return encryption, refusals


class Entered:
    """Where decrypted connections come out."""

    def __init__(self) -> None:
        self._sockets: asyncio.Queue[socket.socket] = asyncio.Queue()

    def enter(self, sock: socket.socket, _peer: str) -> None:
        self._sockets.put_nowait(sock)

    async def stream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(sock=await self._sockets.get())


def pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


async def test_what_a_peer_says_comes_out_decrypted_and_the_answer_goes_back(tls: Tls) -> None:
    encryption, _ = made(tls)
    entered = Entered()
    ours, theirs = pair()
    encryption.take(theirs, "peer", entered.enter)
    reader, writer = await asyncio.open_unix_connection(
        sock=ours, ssl=client_context(tls), server_hostname="localhost"
    )
    writer.write(b"question")
    plain_reader, plain_writer = await entered.stream()
    assert await plain_reader.readexactly(8) == b"question"
    assert len(encryption) == 1
    plain_writer.write(b"answer")
    plain_writer.close()
    await plain_writer.wait_closed()
    assert await reader.read() == b"answer"
    writer.close()
    await encryption.drain(60.0, 60.0)
    assert len(encryption) == 0
    await writer.wait_closed()


async def test_a_handshake_that_takes_too_long_is_counted(tls: Tls) -> None:
    encryption, refusals = made(tls, limit_s=0.01)
    ours, theirs = pair()
    encryption.take(theirs, "peer", Entered().enter)
    await encryption.drain(60.0, 60.0)
    assert refusals.counts == {"TooSlow": 1}
    ours.close()


async def test_a_handshake_that_fails_is_counted(tls: Tls) -> None:
    encryption, refusals = made(tls)
    ours, theirs = pair()
    ours.send(b"\x16\x03\x01\x00\x05hello")
    encryption.take(theirs, "peer", Entered().enter)
    await encryption.drain(60.0, 60.0)
    assert refusals.counts == {"BadGreeting": 1}
    ours.close()


async def test_the_oldest_handshake_gives_way_to_a_new_one(tls: Tls) -> None:
    encryption, refusals = made(tls, pending_max=1)
    first, theirs = pair()
    encryption.take(theirs, "first", Entered().enter)
    second, theirs = pair()
    encryption.take(theirs, "second", Entered().enter)
    assert await asyncio.get_running_loop().sock_recv(first, 1) == b""
    assert refusals.counts == {"Overloaded": 1}
    await encryption.close()
    assert await asyncio.get_running_loop().sock_recv(second, 1) == b""
    assert refusals.counts == {"Overloaded": 1}
    first.close()
    second.close()


async def test_a_connection_that_breaks_is_no_alarm(
    tls: Tls, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "weft")
    encryption, _ = made(tls)
    entered = Entered()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours = socket.create_connection(listening.getsockname())
        theirs = listening.accept()[0]
    theirs.setblocking(False)
    encryption.take(theirs, "peer", entered.enter)
    _, writer = await asyncio.open_connection(
        sock=ours, ssl=client_context(tls), server_hostname="localhost"
    )
    _, plain_writer = await entered.stream()
    # So that the connection is reset, not closed.
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    await encryption.drain(60.0, 60.0)
    assert "TLS connection ended" in caplog.text
    assert max(record.levelno for record in caplog.records) == logging.DEBUG
    plain_writer.close()
    await plain_writer.wait_closed()


async def test_a_drain_closes_a_connection_that_carries_nothing_and_waits_for_others(
    tls: Tls,
) -> None:
    encryption, _ = made(tls)
    entered = Entered()
    ours, theirs = pair()
    encryption.take(theirs, "peer", entered.enter)
    reader, writer = await asyncio.open_unix_connection(
        sock=ours, ssl=client_context(tls), server_hostname="localhost", limit=1
    )
    _, plain_writer = await entered.stream()
    plain_writer.write(bytes(4 << 20))
    await reader.readexactly(1 << 20)
    # Nothing is read from now on.
    await encryption.drain(1000.0, 0.2)
    assert len(encryption) == 0
    plain_writer.transport.abort()
    writer.transport.abort()


async def test_a_new_certificate_holds_for_who_comes_next(tls: Tls, other_tls: Tls) -> None:
    encryption, _ = made(tls)
    encryption.load(other_tls)
    entered = Entered()
    ours, theirs = pair()
    encryption.take(theirs, "peer", entered.enter)
    _, writer = await asyncio.open_unix_connection(
        sock=ours, ssl=client_context(other_tls), server_hostname="localhost"
    )
    writer.transport.abort()
    await encryption.close()


async def test_a_certificate_that_cannot_be_used_changes_nothing(tls: Tls, tmp_path: Path) -> None:
    encryption, _ = made(tls)
    with pytest.raises(BadOption, match=r"none\.pem"):
        encryption.load(Tls(cert=str(tmp_path / "none.pem"), key=tls.key))
    ours, theirs = pair()
    encryption.take(theirs, "peer", Entered().enter)
    _, writer = await asyncio.open_unix_connection(
        sock=ours, ssl=client_context(tls), server_hostname="localhost"
    )
    writer.transport.abort()
    await encryption.close()


def test_a_key_that_does_not_fit_the_certificate_is_refused(tls: Tls, other_tls: Tls) -> None:
    with pytest.raises(BadOption, match=r"first\.pem.*second\.key"):
        server_context(Tls(cert=tls.cert, key=other_tls.key))


def test_nothing_older_than_tls_1_2_is_spoken(tls: Tls) -> None:
    context = server_context(tls)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
