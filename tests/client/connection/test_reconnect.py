"""How a connection is made, lost and made again, with real and scripted gateways."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from weft.client.asyncio.connection import AsyncConnection, connect
from weft.client.connection import reconnect as module
from weft.client.connection.reconnect import ReconnectLoop
from weft.client.connection.transport import SocketTransport
from weft.client.status import Status, What
from weft.errors import (
    BadGreeting,
    ConnectionLost,
    InternalError,
    NoSuchService,
    NotOpen,
    Unreachable,
)
from weft.wire.address import addresses_from
from weft.wire.frames import Kind
from weft.wire.message.message import Message

Scripted = Callable[[], AbstractAsyncContextManager[Any]]

QUICK: dict[str, Any] = {"backoff_first_s": 0.001, "backoff_cap_s": 0.01}


class Statuses:
    """What a connection said of itself, to be waited for."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Status] = asyncio.Queue()
        self.put = self._queue.put_nowait

    async def wait_for(self, what: What) -> Status:
        while True:
            status = await self._queue.get()
            if status.what is what:
                return status


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


async def test_a_first_attempt_that_reaches_nobody_raises(nobody: str) -> None:
    statuses = Statuses()
    with pytest.raises(Unreachable, match=nobody):
        await connect(nobody, on_status=statuses.put)
    assert isinstance((await statuses.wait_for(What.FAILED)).error, Unreachable)
    await statuses.wait_for(What.CLOSED)


async def test_a_first_attempt_that_is_refused_raises(scripted: Scripted) -> None:
    async with scripted() as gateway:
        statuses = Statuses()
        connecting = asyncio.ensure_future(connect(gateway.address, on_status=statuses.put))
        peer = await gateway.stranger()
        told = Message(number=4004, name="NoSuchService", text="no such thing", kind=1)
        peer.send(Kind.ERROR, b"default", told)
        with pytest.raises(NoSuchService, match="no such thing"):
            await connecting
        assert isinstance((await statuses.wait_for(What.REFUSED)).error, NoSuchService)


async def test_a_gateway_that_does_not_greet_is_unreachable(scripted: Scripted) -> None:
    async with scripted() as gateway:
        with pytest.raises(Unreachable, match=r"did not answer within 0\.05 s"):
            await connect(gateway.address, connect_timeout_s=0.05)


def stand_still(seconds: float) -> None:
    """Keep the loop from doing anything, as a program that computes does."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until:
        pass


async def test_a_welcome_that_is_read_too_late_by_a_busy_program_counts(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address, connect_timeout_s=0.1))
        peer = await gateway.stranger()
        peer.welcome()
        stand_still(0.2)
        connection = await connecting
        assert connection.is_connected
        assert connection.statistics.connects == 1
        assert len(gateway._peers) == 1
        await gateway.part(connection)


async def test_a_gateway_that_welcomes_and_hangs_up_at_once_was_reached(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway:
        statuses = Statuses()
        connecting = asyncio.ensure_future(
            connect(gateway.address, on_status=statuses.put, **QUICK)
        )
        peer = await gateway.stranger()
        peer.welcome()
        peer.close()
        stand_still(0.01)
        connection = await connecting
        await statuses.wait_for(What.DISCONNECTED)
        await gateway.peer()
        await gateway.part(connection)


async def test_an_attempt_that_is_given_up_leaves_no_line(scripted: Scripted) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address))
        peer = await gateway.stranger()
        peer.welcome()
        connecting.cancel()
        await asyncio.wait({connecting})
        await peer.hung_up()


async def test_a_gateway_that_hangs_up_instead_of_greeting_is_lost(scripted: Scripted) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address))
        (await gateway.stranger()).close()
        with pytest.raises(ConnectionLost, match="was ended by the gateway"):
            await connecting


async def test_a_gateway_of_another_version_is_refused(scripted: Scripted) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address))
        await gateway.peer(version=2)
        with pytest.raises(BadGreeting, match="uses protocol version 2"):
            await connecting


async def test_the_addresses_are_tried_in_turn(nobody: str, gateway: str) -> None:
    async with connect([nobody, gateway]) as connection:
        assert connection.is_connected


async def test_a_refusal_is_raised_rather_than_a_silence(nobody: str, scripted: Scripted) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(f"{gateway.address},{nobody}"))
        peer = await gateway.stranger()
        peer.send(Kind.ERROR, b"default", Message(number=4004, name="x", text="no", kind=1))
        with pytest.raises(NoSuchService):
            await connecting


async def test_one_that_waits_reports_every_failure_until_it_is_answered(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway:
        await gateway.stop()
        statuses = Statuses()
        connecting = asyncio.ensure_future(
            connect(gateway.address, wait=True, on_status=statuses.put, **QUICK)
        )
        for _ in range(3):
            await statuses.wait_for(What.RECONNECTING)
            await statuses.wait_for(What.FAILED)
        await gateway.start(int(gateway.address.rpartition(":")[2]))
        await gateway.peer()
        await gateway.part(await connecting)


async def test_waiting_can_be_given_up(nobody: str) -> None:
    statuses = Statuses()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await connect(nobody, wait=True, on_status=statuses.put, **QUICK)
    await statuses.wait_for(What.CLOSED)


async def test_a_refused_client_goes_on_asking_after_the_longest_pause(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway:
        statuses = Statuses()
        connecting = asyncio.ensure_future(
            connect(
                gateway.address,
                wait=True,
                on_status=statuses.put,
                backoff_first_s=0.001,
                backoff_cap_s=0.015,
            )
        )
        for _ in range(2):
            peer = await gateway.stranger()
            peer.send(Kind.ERROR, b"default", Message(number=4004, name="x", text="no", kind=1))
            await statuses.wait_for(What.REFUSED)
            assert "in 0.015 s" in (await statuses.wait_for(What.RECONNECTING)).detail
        await gateway.peer()
        await gateway.part(await connecting)


async def test_a_gateway_that_comes_back_is_found_again(running: Any) -> None:
    statuses = Statuses()
    async with connect(running.address, on_status=statuses.put, **QUICK) as connection:
        subscription = connection.subscribe("a.*")
        await subscription.ready()
        running.stop()
        assert isinstance((await statuses.wait_for(What.DISCONNECTED)).error, ConnectionLost)
        await connection.publish("a.b", b"said meanwhile")
        running.start()
        await statuses.wait_for(What.CONNECTED)
        assert (await subscription.next(10)).payload == b"said meanwhile"
        assert connection.statistics.connects == 2


async def test_a_draining_gateway_is_left_for_the_next(running: Any, another: Any) -> None:
    statuses = Statuses()
    addresses = [running.address, another.address]
    async with connect(addresses, on_status=statuses.put, **QUICK) as connection:
        assert running.address in (await statuses.wait_for(What.CONNECTED)).detail
        await asyncio.to_thread(running.drain)
        assert another.address in (await statuses.wait_for(What.CONNECTED)).detail
        await connection.flush()


async def test_one_that_is_lost_at_once_is_not_redialled_without_a_growing_pause(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway:
        statuses = Statuses()
        connecting = asyncio.ensure_future(
            connect(gateway.address, on_status=statuses.put, backoff_first_s=0.001)
        )
        (await gateway.peer()).close()
        connection = await connecting
        for _ in range(4):
            (await gateway.peer()).close()
        assert connection._keeper._backoff._next_s == 0.001 * 2**4
        await gateway.part(connection)


async def test_one_that_lasted_is_redialled_at_once(scripted: Scripted) -> None:
    async with scripted() as gateway:
        options: dict[str, Any] = {"backoff_first_s": 0.001, "backoff_cap_s": 0.008}
        connecting = asyncio.ensure_future(connect(gateway.address, **options))
        (await gateway.peer()).close()
        connection = await connecting
        (await gateway.peer()).close()
        lasting = await gateway.peer(ping_s=0.05)
        await lasting.frame(Kind.PING)
        lasting.close()
        await gateway.peer()
        assert connection._keeper._backoff._next_s == 0.002
        await gateway.part(connection)


async def test_what_was_not_sent_is_told_at_the_end(scripted: Scripted) -> None:
    async with scripted() as gateway:
        statuses = Statuses()
        connecting = asyncio.ensure_future(
            connect(gateway.address, on_status=statuses.put, backoff_first_s=60, backoff_cap_s=60)
        )
        peer = await gateway.peer()
        connection = await connecting
        peer.close()
        await statuses.wait_for(What.RECONNECTING)
        await connection.publish("a", b"x" * 1000)
        await connection.close()
        assert "bytes were not sent" in (await statuses.wait_for(What.CLOSED)).detail


async def test_closing_sends_what_is_buffered_and_a_goodbye(scripted: Scripted) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address))
        peer = await gateway.peer()
        connection = await connecting
        for _ in range(50):
            await connection.publish("a", b"x" * 100_000)
        closing = asyncio.create_task(connection.close())
        for _ in range(50):
            await peer.frame(Kind.MESSAGE)
        await peer.frame(Kind.GOODBYE)
        peer.close()
        await closing


async def test_a_gateway_that_does_not_let_go_is_left(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_S", 0.05)
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address))
        peer = await gateway.peer()
        await (await connecting).close()
        await peer.hung_up()


class Shrinking(asyncio.Transport):
    """A transport whose buffer is emptied a little whenever one looks."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Never full."""

    def get_write_buffer_size(self) -> int:
        self._size = max(self._size - 1, 0)
        return self._size


async def test_a_slow_gateway_is_waited_for_while_it_takes_something(
    gateway: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_S", 0.001)
    async with connect(gateway) as connection:
        line = SocketTransport(addresses_from(gateway)[0], connection._engine)
        line.connection_made(Shrinking(100))
        await connection._keeper._let_go(line)
        assert line.unsent_bytes == 0


async def publish_much(connection: AsyncConnection) -> None:
    for _ in range(50):
        await connection.publish("a", b"x" * 100_000)


async def test_what_a_gateway_did_not_take_is_told_at_the_end(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_S", 0.05)
    async with scripted() as gateway:
        statuses = Statuses()
        connecting = asyncio.ensure_future(connect(gateway.address, on_status=statuses.put))
        await gateway.peer()
        connection = await connecting
        await publish_much(connection)
        await connection.close()
        detail = (await statuses.wait_for(What.CLOSED)).detail
        # The rest is with the system, which takes as much as it likes.
        assert int(detail.split()[2]) > 0
        assert detail.endswith("bytes were not sent")


async def test_closing_waits_for_a_gateway_that_said_goodbye_first(scripted: Scripted) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address))
        peer = await gateway.peer()
        connection = await connecting
        line = connection._engine.line
        assert line is not None
        await publish_much(connection)
        peer.send(Kind.GOODBYE, body=Message(reason="draining", text=""))
        while not connection._engine.is_parting:
            await asyncio.wait({line.ended}, timeout=0.001)
        closing = asyncio.create_task(connection.close())
        for _ in range(50):
            await peer.frame(Kind.MESSAGE)
        await peer.frame(Kind.GOODBYE)
        peer.close()
        await closing


async def test_a_cancelled_close_leaves_nothing_behind(scripted: Scripted) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address))
        peer = await gateway.peer()
        connection = await connecting
        closing = asyncio.create_task(connection.close())
        await peer.frame(Kind.GOODBYE)
        closing.cancel()
        await asyncio.wait({closing})
        assert closing.cancelled()
        await peer.hung_up()
        await connection.close()


async def test_closing_twice_at_once_is_closing(gateway: str) -> None:
    connection = await connect(gateway)
    await asyncio.gather(connection.close(), connection.close())
    await connection.close()


async def test_it_is_opened_once(gateway: str) -> None:
    connection = await connect(gateway)
    with pytest.raises(NotOpen, match="opened or closed before"):
        await connection._keeper.open()
    await connection.close()


async def test_a_fault_of_the_client_itself_is_not_silent(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: ReconnectLoop, __: SocketTransport) -> None:
        raise RuntimeError("a fault of our own")

    monkeypatch.setattr(ReconnectLoop, "_watch", broken)
    async with scripted() as gateway:
        statuses = Statuses()
        connecting = asyncio.ensure_future(connect(gateway.address, on_status=statuses.put))
        await gateway.peer()
        connection = await connecting
        assert isinstance((await statuses.wait_for(What.CLOSED)).error, RuntimeError)
        with pytest.raises((NotOpen, InternalError)):
            await connection.flush()
        await connection.close()
