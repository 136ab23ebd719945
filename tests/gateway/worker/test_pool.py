import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from weft.errors import NoSuchService
from weft.gateway.config.settings import Settings
from weft.gateway.front.rejections import Rejections
from weft.gateway.worker.pool import Pool
from weft.wire.frames import Decoder, Kind, encode


@asynccontextmanager
async def started(settings: Settings) -> AsyncIterator[Pool]:
    pool = Pool(settings, Rejections("london"))
    try:
        await pool.start()
        yield pool
    finally:
        await pool.close()


async def first_kind(sock: socket.socket) -> int:
    """The kind of the first frame that comes."""
    decoder = Decoder()
    while (frame := decoder.next_frame()) is None:
        data = await asyncio.get_running_loop().sock_recv(sock, 4096)
        assert data, "the connection ended"
        decoder.feed(data)
    return frame[4]


async def join(pool: Pool, service: str) -> socket.socket:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    ours.send(encode(Kind.CONNECT, service.encode()))
    try:
        pool.give(service, theirs.fileno())
    except NoSuchService:
        ours.close()
        theirs.close()
        raise
    theirs.detach()
    return ours


async def test_named_services_are_up_once_it_has_started() -> None:
    async with started(Settings(services=("a", "b"))) as pool:
        assert pool.not_up == []
        reports = await pool.report()
        assert {name: report.state for name, report in reports.items()} == {"a": "up", "b": "up"}
        assert len({report.pid for report in reports.values()}) == 2


async def test_services_tell_which_gateways_they_know() -> None:
    async with started(Settings(name="london", services=("a",))) as pool:
        assert pool.running == ["a"]
        found = await pool.nodes("a")
        assert found is not None
        assert [(each.name, each.service) for each in found] == [("london", "a")]
        assert await pool.nodes("b") is None


async def test_another_service_starts_when_it_is_first_asked_for() -> None:
    async with started(Settings()) as pool:
        sock = await join(pool, "weather")
        assert pool.not_up == ["weather"]
        assert pool.connections == 1
        assert await first_kind(sock) == Kind.WELCOME
        assert pool.not_up == []
        sock.close()


async def test_a_service_that_is_not_allowed_is_refused() -> None:
    async with started(Settings(services_max=1)) as pool:
        first = await join(pool, "a")
        with pytest.raises(NoSuchService):
            await join(pool, "b")
        first.close()


async def test_new_settings_start_the_services_they_name() -> None:
    async with started(Settings(services=("a",))) as pool:
        pool.change(Settings(services=("b",)))
        sock = await join(pool, "b")
        assert await first_kind(sock) == Kind.WELCOME
        with pytest.raises(NoSuchService):
            await join(pool, "a")
        sock.close()


@pytest.mark.req("MM-14")
async def test_when_one_worker_is_killed_the_others_do_not_notice() -> None:
    async with started(Settings(services=("a", "b"))) as pool:
        spared, hit = await join(pool, "a"), await join(pool, "b")
        assert [await first_kind(sock) for sock in (spared, hit)] == [Kind.WELCOME] * 2
        pid = (await pool.report())["b"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert await asyncio.get_running_loop().sock_recv(hit, 1) == b""
        spared.send(encode(Kind.PING))
        assert await first_kind(spared) == Kind.PONG
        again = await join(pool, "b")
        assert await first_kind(again) == Kind.WELCOME
        assert (await pool.report())["b"].restarts == 1
        for sock in (spared, hit, again):
            sock.close()


async def test_draining_ends_every_worker() -> None:
    async with started(Settings(services=("a", "b"))) as pool:
        pids = [report.pid for report in (await pool.report()).values()]
        await pool.drain(30.0)
        assert {report.state for report in (await pool.report()).values()} == {"draining"}
        for pid in pids:
            assert pid is not None
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
