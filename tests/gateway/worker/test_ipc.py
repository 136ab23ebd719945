import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvloop

from weft.broker.limits import Limits
from weft.errors import FrameTooBig, Overloaded
from weft.gateway.config.settings import Log, Settings
from weft.gateway.http.service_status import ServiceStatus
from weft.gateway.worker.ipc import (
    Announce,
    Ask,
    ConnectionCount,
    Drain,
    IpcChannel,
    News,
    Order,
    SettingsChange,
    Start,
    WorkerReady,
    WorkerSettings,
    WorkerStatus,
    channel_to_front,
    channel_to_worker,
)
from weft.transports.http.origins import WebRules

STATUS = ServiceStatus(
    service="weather",
    connections=1,
    subscriptions=2,
    messages_in=3,
    bytes_in=4,
    deliveries=5,
    bytes_out=6,
    message_rate=7.0,
    byte_rate=8.0,
    dropped={"slow": 9},
    refused={"BadFrame": 10},
    ended={"left": 11},
    slow_readers=12,
    backlog_bytes=13,
    arena_bytes=14,
    uptime_s=15.0,
)
ORDERS: list[Order] = [
    Start("weather", "london", WorkerSettings()),
    SettingsChange(WorkerSettings(Limits(ping_s=1.0), Log(level="debug"), 5.0, looks=False)),
    Ask(1),
    Announce("worker_restarted", b"body"),
    Drain(3.0),
]
NEWS: list[News] = [WorkerReady(), WorkerStatus(1, STATUS), ConnectionCount(3, 2)]

Ends = tuple[IpcChannel[Order, News], IpcChannel[News, Order]]


@asynccontextmanager
async def opened() -> AsyncIterator[Ends]:
    ours, theirs = socket.socketpair()
    front, worker = await channel_to_worker(ours), await channel_to_front(theirs)
    yield front, worker
    await front.close()
    await worker.close()


async def test_what_one_says_the_other_hears() -> None:
    async with opened() as (front, worker):
        for order in ORDERS:
            front.send(order)
        assert [await worker.receive() for _ in ORDERS] == ORDERS
        for news in NEWS:
            worker.send(news)
        assert [await front.receive() for _ in NEWS] == NEWS


def test_workers_go_by_what_is_theirs_of_the_settings() -> None:
    settings = Settings(
        limits=Limits(ping_s=1.0), log=Log(level="debug"), drain_s=5.0, look="never"
    )
    here = WebRules(hosts=("127.0.0.1",))
    rules = WorkerSettings(Limits(ping_s=1.0), Log(level="debug"), 5.0, looks=False, web=here)
    assert WorkerSettings.of(settings) == rules
    assert WorkerSettings.of(Settings()) == WorkerSettings(web=here)


async def test_when_the_other_is_gone_nothing_is_heard() -> None:
    async with opened() as (front, worker):
        await front.close()
        assert await worker.receive() is None


async def test_a_message_cut_short_is_none() -> None:
    ours, theirs = socket.socketpair()
    worker = await channel_to_front(theirs)
    ours.sendall(b"\x10\x00\x00\x00half")
    ours.close()
    assert await worker.receive() is None
    await worker.close()


async def test_a_message_that_is_too_long_is_refused() -> None:
    ours, theirs = socket.socketpair()
    worker = await channel_to_front(theirs)
    ours.sendall(b"\xff\xff\xff\x7f")
    with pytest.raises(FrameTooBig):
        await worker.receive()
    ours.close()
    await worker.close()


async def test_what_the_other_does_not_read_is_not_kept_without_end() -> None:
    async with opened() as (front, _):
        order = Announce("worker_restarted", bytes(100_000))
        for _ in range(10):
            front.send(order)
        with pytest.raises(Overloaded):
            _send_many(front, order)


def _send_many(front: IpcChannel[Order, News], order: Order) -> None:
    for _ in range(100):
        front.send(order)


def test_what_is_said_to_one_that_is_gone_does_no_harm() -> None:
    async def talk() -> None:
        async with opened() as (front, worker):
            await worker.close()
            # The first is refused by the kernel, and then the way is closed.
            for _ in range(10):
                front.send(Ask(1))
                await asyncio.sleep(0)
            assert await front.receive() is None

    # The loop that gateways run on: unlike asyncio's own it raises.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(talk())
