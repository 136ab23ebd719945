"""Gateways are dialled in time, by TLS where it is asked for, and nowhere that was not allowed."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from weft.broker.limits import Limits
from weft.broker.service import Peer, Service
from weft.errors import BadOption
from weft.gateway.config.settings import Tls
from weft.gateway.front.tls import server_context
from weft.transports import link_dialer
from weft.transports.link_dialer import DIALS_MAX, Caution, Dialler, LinkTarget, client_context
from weft.transports.loop.poller import Poll
from weft.transports.loop.turn import Turn
from weft.wire.frames import Kind, encode

HELLO = encode(Kind.LINK, b"weather", b"hello")


class Caller:
    """A service that dials, and what became of it."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.service = Service("weather", "london", 7, Limits())
        self._turn = Turn(self.service, loop)
        self._poll = Poll(self._turn, loop)
        self.dialler = Dialler(self._turn, self._poll, self._dialled, self._failed)
        self.told: asyncio.Queue[tuple[str, Peer | str]] = asyncio.Queue()

    async def dial(self, target: LinkTarget) -> Peer | str:
        """Whoever was reached, or why nobody was."""
        self.dialler.dial("there", target)
        address, result = await self.told.get()
        assert address == "there"
        return result

    async def close(self) -> None:
        for peer in list(self.service.peers.values()):
            if peer.door is not None:
                peer.door.abort()
        await self.dialler.close()
        self._poll.close()

    def _dialled(self, address: str, peer: Peer) -> None:
        peer.owe(HELLO)
        self.told.put_nowait((address, peer))

    def _failed(self, address: str, why: str) -> None:
        self.told.put_nowait((address, why))


@asynccontextmanager
async def calling() -> AsyncIterator[Caller]:
    caller = Caller()
    try:
        yield caller
    finally:
        await caller.close()


class Other:
    """Whoever is dialled: it keeps the first frame of everyone."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.put_nowait(await reader.readexactly(len(HELLO)))
        writer.write(encode(Kind.CONNECT, b"traffic"))
        await reader.read()
        writer.close()


@asynccontextmanager
async def listening(
    context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[tuple[Other, int]]:
    other = Other()
    server = await asyncio.start_server(other.greet, host, 0, ssl=context)
    async with server:
        yield other, server.sockets[0].getsockname()[1]


async def gone(peer: Peer) -> None:
    """Wait until a peer has left."""
    while peer.door is not None:
        await asyncio.sleep(0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
async def test_whoever_is_dialled_is_a_peer_like_any_other(host: str) -> None:
    bound = "::1" if ":" in host else "127.0.0.1"
    async with listening(host=bound) as (other, port), calling() as caller:
        peer = await caller.dial(LinkTarget(host, port))
        assert isinstance(peer, Peer)
        assert await other.heard.get() == HELLO
        # What it answers is dealt with: it greeted for another service.
        await gone(peer)
        assert type(peer.error).__name__ == "NoSuchService"


async def test_a_port_where_nobody_is_is_told_of() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with calling() as caller:
            why = await caller.dial(LinkTarget("127.0.0.1", unused.getsockname()[1]))
    assert why == "Connection refused"


async def test_a_name_that_stands_for_nothing_is_told_of() -> None:
    async with calling() as caller:
        assert isinstance(await caller.dial(LinkTarget("nowhere.invalid", 7411)), str)
        assert not caller.service.peers


async def test_no_other_machine_is_dialled_without_tls() -> None:
    async with calling() as caller:
        why = await caller.dial(LinkTarget("192.0.2.1", 7411))
    assert why == (
        "192.0.2.1 is another machine, where links need tls://, or mesh.plain = 'allowed'"
    )


@pytest.mark.parametrize(
    ("target", "caution"),
    [
        (LinkTarget("192.0.2.1", 7411), Caution(is_plain_allowed=True)),
        (LinkTarget("192.0.2.1", 7411, is_tls=True), Caution()),
    ],
)
async def test_another_machine_is_dialled_by_tls_or_where_plain_is_allowed(
    target: LinkTarget, caution: Caution, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody has this address: that it cannot be reached shows that it was tried.
    monkeypatch.setattr(link_dialer, "DIAL_S", 0.05)
    async with calling() as caller:
        caller.dialler.change(caution)
        why = await caller.dial(target)
    assert isinstance(why, str)
    assert "another machine" not in why


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_tls_is_spoken_where_it_is_asked_for(tls: Tls, host: str) -> None:
    async with listening(server_context(tls)) as (other, port), calling() as caller:
        caller.dialler.change(Caution(tls_ca=tls.cert))
        peer = await caller.dial(LinkTarget(host, port, is_tls=True))
        assert isinstance(peer, Peer)
        assert await other.heard.get() == HELLO
        await gone(peer)
        assert type(peer.error).__name__ == "NoSuchService"


async def test_a_certificate_that_nobody_vouches_for_is_not_accepted(
    tls: Tls, other_tls: Tls
) -> None:
    async with listening(server_context(tls)) as (_, port), calling() as caller:
        caller.dialler.change(Caution(tls_ca=other_tls.cert))
        why = await caller.dial(LinkTarget("localhost", port, is_tls=True))
        assert isinstance(why, str)
        assert why.startswith("certificate not accepted: ")
        assert not caller.service.peers


async def test_a_certificate_for_another_name_is_not_accepted(tls: Tls) -> None:
    async with listening(server_context(tls), "127.0.0.2") as (_, port), calling() as caller:
        caller.dialler.change(Caution(tls_ca=tls.cert))
        why = await caller.dial(LinkTarget("127.0.0.2", port, is_tls=True))
        assert isinstance(why, str)
        assert "not accepted" in why


async def test_whoever_does_not_speak_tls_is_given_up_in_time(
    tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_dialer, "DIAL_S", 0.05)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        async with calling() as caller:
            caller.dialler.change(Caution(tls_ca=tls.cert))
            port = silent.getsockname()[1]
            why = await caller.dial(LinkTarget("127.0.0.1", port, is_tls=True))
    assert why == "no answer within 0.05 s"


async def test_a_link_that_ends_ends_its_tls(tls: Tls) -> None:
    async with listening(server_context(tls)) as (other, port), calling() as caller:
        caller.dialler.change(Caution(tls_ca=tls.cert))
        peer = await caller.dial(LinkTarget("localhost", port, is_tls=True))
        assert isinstance(peer, Peer)
        assert peer.door is not None
        await other.heard.get()
        peer.door.abort()
        # It hangs up when this side has: then nothing is left to carry.
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)


async def test_an_address_is_dialled_once_at_a_time() -> None:
    async with listening() as (other, port), calling() as caller:
        caller.dialler.dial("there", LinkTarget("127.0.0.1", port))
        await caller.dial(LinkTarget("127.0.0.1", port))
        await other.heard.get()
        assert caller.told.empty()
        assert len(caller.service.peers) == 1


async def test_so_many_are_dialled_at_once_and_no_more() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        target = LinkTarget("127.0.0.1", silent.getsockname()[1])
        async with calling() as caller:
            for number in range(DIALS_MAX + 1):
                caller.dialler.dial(f"{number}", target)
            told = dict([await caller.told.get() for _ in range(DIALS_MAX + 1)])
    assert told.pop(f"{DIALS_MAX}") == f"{DIALS_MAX} dials are under way already"
    assert set(told.values()) == {"Connection refused"}


async def test_nothing_is_told_after_the_end(tls: Tls) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        async with calling() as caller:
            caller.dialler.change(Caution(tls_ca=tls.cert))
            caller.dialler.dial(
                "there", LinkTarget("127.0.0.1", silent.getsockname()[1], is_tls=True)
            )
            await asyncio.sleep(0)
        assert caller.told.empty()


def test_certificates_that_cannot_be_read_are_named() -> None:
    with pytest.raises(BadOption, match=r"mesh.tls_ca '/nowhere/ca.pem': No such file"):
        client_context("/nowhere/ca.pem")
