import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from weft.broker.limits import Limits
from weft.gateway.config.settings import Log
from weft.gateway.front.fd_passing import FdSender
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
    channel_to_worker,
)
from weft.wire.frames import Decoder, Kind, encode
from weft.wire.message.message import Message

START = Start("weather", "london", WorkerSettings(log=Log(level="warning"), drain_s=30.0))
CONNECT = encode(Kind.CONNECT, b"weather", reply=b"me.1")
EVENT = b"_WEFT.event.worker_restarted"


class Front:
    """What a worker sees of its front, played by the test."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        channel: IpcChannel[Order, News],
        outgoing: FdSender,
    ) -> None:
        self.process = process
        self.channel = channel
        self.outgoing = outgoing

    async def hear(self, kind: type[News]) -> News:
        """The next news of this kind; others are passed over."""
        while True:
            news = await self.channel.receive()
            assert news is not None
            if isinstance(news, kind):
                return news

    async def connect(self) -> "Peer":
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.outgoing.put(theirs.detach())
        peer = Peer(ours)
        await peer.send(CONNECT)
        assert (await peer.frame())[4] == Kind.WELCOME
        return peer

    async def exit_status(self) -> int:
        return await self.process.wait()


class Peer:
    """One client of the worker."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._decoder = Decoder()
        self._loop = asyncio.get_running_loop()

    async def send(self, frame: bytes) -> None:
        await self._loop.sock_sendall(self.sock, frame)

    async def frame(self) -> bytes:
        while (frame := self._decoder.next_frame()) is None:
            data = await self._loop.sock_recv(self.sock, 4096)
            assert data, "the connection ended"
            self._decoder.feed(data)
        return frame

    async def goodbye(self) -> str:
        frame = await self.frame()
        assert frame[4] == Kind.GOODBYE
        self.sock.close()
        return Message.from_frame(frame).get_string("reason")


@asynccontextmanager
async def running(start: Start = START) -> AsyncIterator[Front]:
    """A worker process that is ready."""
    outgoing = FdSender()
    ours, theirs = socket.socketpair()
    descriptors = (theirs.fileno(), outgoing.far.fileno())
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "weft.gateway.worker.process", *map(str, descriptors)),
        pass_fds=descriptors,
        stderr=asyncio.subprocess.PIPE,
    )
    theirs.close()
    channel = await channel_to_worker(ours)
    try:
        channel.send(start)
        assert await channel.receive() == WorkerReady()
        yield Front(process, channel, outgoing)
    finally:
        await channel.close()
        if process.returncode is None:
            process.kill()
        await process.communicate()
        outgoing.close()


@pytest.mark.req("MM-14", "MM-15")
async def test_a_socket_that_is_sent_is_served() -> None:
    async with running() as front:
        peer = await front.connect()
        await peer.send(encode(Kind.SUBSCRIBE, b"a", flags=1))
        assert (await peer.frame())[4] == Kind.OK
        peer.sock.close()


async def test_the_front_is_told_how_many_came_and_how_many_are_there() -> None:
    async with running() as front:
        first, second = await front.connect(), await front.connect()
        while await front.hear(ConnectionCount) != ConnectionCount(2, 2, is_needed=False):
            pass
        first.sock.close()
        assert await front.hear(ConnectionCount) == ConnectionCount(2, 1, is_needed=False)
        second.sock.close()
        assert await front.hear(ConnectionCount) == ConnectionCount(2, 0, is_needed=False)


async def test_a_question_is_answered_with_the_service_in_numbers() -> None:
    async with running() as front:
        front.channel.send(Ask(42))
        answer = await front.hear(WorkerStatus)
        assert isinstance(answer, WorkerStatus)
        assert answer.number == 42
        assert answer.status.service == "weather"


async def test_new_limits_hold_for_who_comes_next() -> None:
    async with running() as front:
        front.channel.send(
            SettingsChange(WorkerSettings(Limits(ping_s=7.0), Log(level="error"), 5.0))
        )
        front.channel.send(Ask(1))
        await front.hear(WorkerStatus)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        front.outgoing.put(theirs.detach())
        peer = Peer(ours)
        await peer.send(CONNECT)
        assert Message.from_frame(await peer.frame())["ping_s"] == 7.0
        ours.close()


async def test_an_event_waits_until_someone_is_there_to_hear_it() -> None:
    async with running() as front:
        front.channel.send(Announce("worker_restarted", Message(restarts=3).encode()))
        peer = await front.connect()
        await peer.send(encode(Kind.SUBSCRIBE, EVENT))
        event = Message.from_frame(await peer.frame())
        assert event.subject == EVENT.decode()
        assert event["restarts"] == 3
        peer.sock.close()


async def test_told_to_drain_it_says_goodbye_and_ends() -> None:
    async with running() as front:
        peer = await front.connect()
        front.channel.send(Drain(30.0))
        assert await peer.goodbye() == "draining"
        assert await front.exit_status() == 0


async def test_sigterm_drains_it_and_leaves_who_is_on_the_way_to_the_next() -> None:
    async with running() as front:
        peer = await front.connect()
        os.kill(front.process.pid, signal.SIGTERM)
        frame = await peer.frame()
        assert frame[4] == Kind.GOODBYE
        ours, theirs = socket.socketpair()
        front.outgoing.put(theirs.detach())
        peer.sock.close()
        assert await front.exit_status() == 0
        front.outgoing.take_back()
        assert len(front.outgoing) == 1
        ours.close()


async def test_it_does_not_outlive_its_front() -> None:
    async with running() as front:
        peer = await front.connect()
        await front.channel.close()
        assert await peer.goodbye() == "draining"
        assert await front.exit_status() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
async def test_signals_of_a_terminal_are_for_the_front(number: signal.Signals) -> None:
    async with running() as front:
        os.kill(front.process.pid, number)
        front.channel.send(Ask(1))
        await front.hear(WorkerStatus)


async def test_a_front_that_never_says_what_to_be_is_given_up() -> None:
    outgoing = FdSender()
    ours, theirs = socket.socketpair()
    descriptors = (theirs.fileno(), outgoing.far.fileno())
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "weft.gateway.worker.process", *map(str, descriptors)),
        pass_fds=descriptors,
    )
    theirs.close()
    ours.close()
    assert await process.wait() == 0
    outgoing.close()
