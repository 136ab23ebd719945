import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.gateway_process import GatewayProcess

import weft
from weft.client.options import SubscriptionOptions
from weft.client.publish.encode import message_frame
from weft.client.subscriptions import replay as module
from weft.errors import BadOption, NotKnown
from weft.gateway.config.settings import JournalSettings, Settings
from weft.gateway.gateway import Gateway
from weft.wire.frames import Stamp, stamp_frame
from weft.wire.message.field_types import moment
from weft.wire.since import beginning

LIMIT_S = 20

MANY = 10_000


@asynccontextmanager
async def serving(folder: Path, **journal: Any) -> AsyncIterator[str]:
    """The address of a gateway that keeps what is published to `a.>`."""
    settings = Settings(
        listen="127.0.0.1:0",
        name="london",
        data=str(folder),
        journal=JournalSettings(patterns=("a.>",), **journal),
    )
    async with Gateway(settings=settings, workers="inline") as gateway:
        yield str(gateway.address)


async def publish(connection: weft.AsyncConnection, numbers: range, subject: str = "a.b") -> None:
    for number in numbers:
        await connection.publish(subject, {"n": number})
    await connection.flush()


async def take(subscription: weft.AsyncSubscription, count: int) -> list[int]:
    return [(await subscription.next(LIMIT_S))["n"] for _ in range(count)]


async def test_history_comes_first_and_then_what_is_live(tmp_path: Path) -> None:
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        await publish(connection, range(100))
        subscription = connection.subscribe("a.>", since=0)
        assert await take(subscription, 100) == list(range(100))
        await publish(connection, range(100, 110))
        assert await take(subscription, 10) == list(range(100, 110))


async def test_nothing_is_missing_or_doubled_at_the_seam(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as gateway,
        weft.connect(gateway) as publisher,
        weft.connect(gateway) as reader,
    ):
        is_ending = False
        count = 0

        async def keep_publishing() -> None:
            nonlocal count
            # So many and no more: where readers are slow, all would only get slower.
            while not is_ending and count < MANY:
                await publisher.publish("a.b", {"n": count})
                count += 1
                if count % 50 == 0:
                    await publisher.flush()

        publishing = asyncio.create_task(keep_publishing())
        while count < 500:
            await asyncio.sleep(0)
        subscriptions = [reader.subscribe("a.b", since=0)]
        for _ in range(10):
            subscriptions.append(reader.subscribe("a.b", since=0))
            await take(subscriptions[0], 200)
        is_ending = True
        await publishing
        await publisher.flush()
        first = await take(subscriptions[0], count - 2000)
        assert first == list(range(2000, count))
        for subscription in subscriptions[1:]:
            assert await take(subscription, count) == list(range(count))


async def test_other_subscriptions_of_the_connection_hear_no_history(tmp_path: Path) -> None:
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        await publish(connection, range(10))
        live = connection.subscribe("a.b")
        late = connection.subscribe("a.b", since=5)
        assert await take(late, 5) == list(range(5, 10))
        await publish(connection, range(10, 12))
        assert await take(live, 2) == await take(late, 2) == [10, 11]


async def test_only_what_was_asked_for_comes(tmp_path: Path) -> None:
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        for number in range(100):
            await connection.publish(f"a.{number % 3}", {"n": number})
        await connection.flush()
        subscription = connection.subscribe(["a.1", "a.2"], since="1h")
        found = await take(subscription, 66)
        assert found == [number for number in range(100) if number % 3]


async def test_it_begins_at_a_time(tmp_path: Path) -> None:
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        await publish(connection, range(5))
        identity = await connection.publish("a.b", {"n": 5}, acknowledge=True)
        await publish(connection, range(6, 8))
        subscription = connection.subscribe("a.b", since=moment(identity.time))
        assert await take(subscription, 3) == [5, 6, 7]
        late = connection.subscribe("a.b", since="0s")
        await late.ready()
        await publish(connection, range(8, 9))
        assert await take(late, 1) == [8]


async def test_messages_of_any_size_come(tmp_path: Path) -> None:
    sizes = [0, 10, 300_000, 1_000_000, 5, 262_144, 1_048_576, 1]
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        for size in sizes:
            await connection.publish("a.b", bytes(size))
        await connection.flush()
        subscription = connection.subscribe("a.b", since=0)
        found = [len((await subscription.next(LIMIT_S)).payload) for _ in sizes]
        assert found == sizes


async def test_a_reader_sets_the_pace(tmp_path: Path) -> None:
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        for number in range(3000):
            await connection.publish("a.b", {"n": number, "fill": bytes(1000)})
        await connection.flush()
        asked = connection.statistics.received_bytes
        subscription = connection.subscribe("a.b", since=0)
        assert await take(subscription, 1) == [0]
        # A page was asked for, and no other until it is taken.
        await connection.flush()
        assert connection.statistics.received_bytes - asked < 1_000_000
        assert await take(subscription, 2999) == list(range(1, 3000))


async def test_a_service_without_a_journal_has_no_history() -> None:
    gateway = Gateway("127.0.0.1:0", workers="inline")
    async with gateway, weft.connect(str(gateway.address)) as connection:
        subscription = connection.subscribe("a.b", since=0)
        with pytest.raises(NotKnown, match="keeps no journal"):
            await subscription.ready()
        with pytest.raises(NotKnown, match="keeps no journal"):
            await subscription.next()


async def test_it_can_be_closed_at_any_time(tmp_path: Path) -> None:
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        await publish(connection, range(1000))
        for count in (0, 1, 999, 1000):
            subscription = connection.subscribe("a.b", since=0)
            assert await take(subscription, count) == list(range(count))
            await subscription.close()
        assert await take(connection.subscribe("a.b", since=999), 1) == [999]


async def test_a_handler_hears_history_too(tmp_path: Path) -> None:
    async with serving(tmp_path) as gateway, weft.connect(gateway) as connection:
        await publish(connection, range(10))
        heard: list[int] = []
        done = asyncio.Event()

        def handle(message: weft.AsyncReceived) -> None:
            heard.append(message["n"])
            if len(heard) == 12:
                done.set()

        connection.subscribe("a.b", handle, since=0)
        while len(heard) < 10:
            await asyncio.sleep(0)
        await publish(connection, range(10, 12))
        await done.wait()
        assert heard == list(range(12))


@pytest.fixture
def gateway_process(tmp_path: Path) -> Iterator[GatewayProcess]:
    settings = {"name": "london", "data": str(tmp_path), "journal.patterns": ["a.>"]}
    with GatewayProcess(tmp_path, settings) as gateway:
        yield gateway


def test_the_blocking_face_has_it_too(gateway_process: GatewayProcess) -> None:
    with weft.Connection(gateway_process.address) as connection:
        for number in range(2000):
            connection.publish("a.b", {"n": number})
        connection.flush()
        subscription = connection.subscribe("a.b", since=0)
        assert [subscription.next(LIMIT_S)["n"] for _ in range(2000)] == list(range(2000))
        connection.publish("a.b", {"n": 2000})
        assert subscription.next(LIMIT_S)["n"] == 2000
        heard: list[int] = []
        done = threading.Event()

        def handle(message: weft.Received) -> None:
            heard.append(message["n"])
            if message["n"] == 2000:
                done.set()

        connection.subscribe("a.b", handle, since=1990)
        assert done.wait(LIMIT_S)
        assert heard == list(range(1990, 2001))
        connection.subscribe("a.b", since=0).close()


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


async def test_neither_a_killed_worker_nor_a_killed_archivist_breaks_it(
    gateway_process: GatewayProcess,
) -> None:
    gateway = gateway_process
    async with weft.connect(gateway.address) as connection:
        for number in range(5000):
            await connection.publish("a.b", {"n": number, "fill": bytes(500)})
        await connection.publish("a.b", {"n": 5000}, acknowledge=True)
        subscription = connection.subscribe("a.b", since=0)
        found = await take(subscription, 100)
        worker = await asyncio.to_thread(gateway.worker, "default")
        # Whoever seals may be there at the moment, too.
        (archivist,) = [pid for pid in children_of(worker) if "history_process" in command_of(pid)]
        os.kill(archivist, signal.SIGKILL)
        found += await take(subscription, 2000)
        os.kill(worker, signal.SIGKILL)
        found += await take(subscription, 5001 - 2100)
        assert found == list(range(5001))
        await connection.publish("a.b", {"n": 5001}, acknowledge=True)
        assert await take(subscription, 1) == [5001]


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def stamped(number: int) -> bytes:
    frame = bytearray(message_frame("other", {"n": number, "fill": bytes(1000)}))
    stamp_frame(frame, 0, Stamp(1, sequence=number))
    return bytes(frame)


async def test_what_is_live_is_held_within_bounds_and_the_rest_announced() -> None:
    gaps: list[weft.Gap] = []
    gateway = Gateway("127.0.0.1:0", workers="inline")
    async with gateway, weft.connect(str(gateway.address)) as connection:
        reader = connection.subscribe("other", queue_bytes=10_000, on_gap=gaps.append)
        replay = module.Replay(reader._queue, 0)
        replay.put([stamped(number) for number in range(1, 21)])
        replay.missed(weft.Gap("reconnected"))
        replay._go_live()
        replay.put([stamped(21)])
        found = await take(reader, 10)
    assert found == [*range(1, 10), 21]
    assert [(gap.reason, gap.count) for gap in gaps] == [("full", 11)]


@pytest.mark.parametrize(
    ("since", "asked"),
    [
        (0, {"position": 0}),
        (4711, {"position": 4711}),
        ("90s", {"ago": 90.0}),
        ("1.5h", {"ago": 5400.0}),
        ("250ms", {"ago": 0.25}),
        ("2d", {"ago": 172_800.0}),
    ],
)
def test_since_is_a_position_or_a_time(since: Any, asked: dict[str, Any]) -> None:
    assert beginning(since) == asked
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert beginning(noon) == {"time": noon}


@pytest.mark.parametrize(
    "since", [-1, "yesterday", "5", "m", 1.5, True, datetime(2026, 11, 16)]
)  # that is the point
def test_anything_else_is_refused(since: Any) -> None:
    with pytest.raises(BadOption, match="since"):
        SubscriptionOptions(since=since)


def test_a_member_of_a_group_has_no_history() -> None:
    with pytest.raises(BadOption, match="group"):
        SubscriptionOptions(since=0, group="workers")
