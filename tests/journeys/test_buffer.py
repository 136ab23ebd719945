"""The publish buffer: bounded whatever the gateway does, and it blocks, raises or drops by choice.

The gateway is made to stop reading by SIGSTOP; what the kernel then still takes is its own affair.
"""

import asyncio
from collections.abc import Iterator

import pytest
from tests.journeys.clients import Client, Connect, Hearing, rest
from tests.journeys.running import RunningGateway, kill, running, stopped

from weft.client.status import What
from weft.errors import Overloaded, TimedOut

# The listener is owed everything at once when the worker goes on.
SETTINGS = """
name = "halting"
services = ["default", "other"]

[limits]
outbox_bytes = 268_435_456
outbox_age_s = 600.0
"""
BUFFER_BYTES = 256 << 10
BODY_BYTES = 64 << 10
# Far more than the kernel's buffers and ours together.
TOO_MANY = 1000


@pytest.fixture(scope="module")
def halting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with running(tmp_path_factory.mktemp("halting"), SETTINGS) as gateway:
        yield gateway


@pytest.fixture
def connect(face: str, halting: RunningGateway) -> Connect:
    return Connect(face, halting.address)


async def publish(client: Client, subject: str, number: int) -> None:
    await client.publish(subject, b"%d " % number + bytes(BODY_BYTES))
    # So that an asyncio client comes to send it: what the socket takes leaves the buffer.
    await asyncio.sleep(0)


class Flood:
    """Publishes until it is told that the buffer is full; `accepted` says how many it took."""

    def __init__(self, client: Client, subject: str) -> None:
        self.accepted = 0
        self._client = client
        self._subject = subject

    async def until_full(self) -> None:
        while self.accepted < TOO_MANY:
            await publish(self._client, self._subject, self.accepted)
            self.accepted += 1


async def numbers(hearing: Hearing, count: int) -> list[int]:
    return [int((await hearing.next()).payload.split()[0]) for _ in range(count)]


async def test_a_full_buffer_raises_if_that_was_chosen(
    connect: Connect, halting: RunningGateway, subject: str
) -> None:
    async with (
        connect(buffer_bytes=BUFFER_BYTES, when_full="raise") as publisher,
        connect() as listener,
    ):
        heard = await listener.subscribe(subject)
        flood = Flood(publisher, subject)
        with (
            halting.stopped_worker("default"),
            pytest.raises(Overloaded, match=str(BUFFER_BYTES)),
        ):
            await flood.until_full()
        # What was accepted is kept; what was refused was never sent.
        assert await numbers(heard, flood.accepted) == list(range(flood.accepted))
        await publisher.flush()
        assert await rest(listener, heard) == []
        await publish(publisher, subject, flood.accepted)
        assert await numbers(heard, 1) == [flood.accepted]


async def test_a_full_buffer_drops_if_that_was_chosen_and_counts_it(
    connect: Connect, halting: RunningGateway, subject: str
) -> None:
    async with (
        connect(buffer_bytes=BUFFER_BYTES, when_full="drop") as publisher,
        connect() as listener,
    ):
        heard = await listener.subscribe(subject)
        with halting.stopped_worker("default"):
            for number in range(TOO_MANY):
                await publish(publisher, subject, number)
            dropped = publisher.statistics.dropped
            assert dropped > 0
            told = await publisher.statuses.until(What.DROPPED)
            assert isinstance(told.error, Overloaded)
        got = await numbers(heard, TOO_MANY - dropped)
        assert got == sorted(set(got))
        await publisher.flush()
        assert await rest(listener, heard) == []
        assert publisher.statistics.dropped == dropped


async def test_a_full_buffer_blocks_until_the_gateway_reads_on(
    connect: Connect, halting: RunningGateway, subject: str
) -> None:
    async def publish_all(client: Client) -> None:
        for number in range(TOO_MANY):
            await publish(client, subject, number)

    async with (
        connect(buffer_bytes=BUFFER_BYTES) as publisher,
        connect() as listener,
        connect(service="other") as elsewhere,
    ):
        heard = await listener.subscribe(subject)
        await elsewhere.answer(subject, lambda asked: asked.text)
        with halting.stopped_worker("default"):
            publishing = asyncio.create_task(publish_all(publisher))
            # Others are not held up by it, in this process or in the gateway.
            for number in range(50):
                assert (await elsewhere.request(subject, str(number))).text == str(number)
            assert not publishing.done()
        assert await numbers(heard, TOO_MANY) == list(range(TOO_MANY))
        await publishing


async def test_a_buffer_that_stays_full_does_not_block_for_ever(
    connect: Connect, halting: RunningGateway, subject: str
) -> None:
    async with (
        connect(buffer_bytes=BUFFER_BYTES, timeout_s=0.3) as publisher,
        connect() as listener,
    ):
        heard = await listener.subscribe(subject)
        flood = Flood(publisher, subject)
        with halting.stopped_worker("default"), pytest.raises(Overloaded, match=r"after 0\.3 s"):
            await flood.until_full()
        assert await numbers(heard, flood.accepted) == list(range(flood.accepted))


async def test_what_is_in_the_buffer_when_the_connection_is_lost_goes_over_the_next(
    connect: Connect, halting: RunningGateway, subject: str
) -> None:
    # More than the kernel could take from it at once.
    async with connect(buffer_bytes=16 << 20, when_full="raise") as client:
        heard = await client.subscribe(subject)
        flood = Flood(client, subject)
        worker = halting.worker("default")
        with stopped(worker):
            with pytest.raises(Overloaded):
                await flood.until_full()
            kill(worker)
        (first,) = await numbers(heard, 1)
        # What the kernel had is lost with the connection; what followed it is not.
        left = range(first + 1, flood.accepted)
        assert await numbers(heard, len(left)) == list(left)
        await client.flush()
        assert await rest(client, heard) == []
        await client.statuses.until(What.GAP)


async def test_a_flush_of_a_gateway_that_stands_still_times_out(
    connect: Connect, halting: RunningGateway, subject: str
) -> None:
    async with connect(timeout_s=0.3) as client:
        with halting.stopped_worker("default"), pytest.raises(TimedOut):
            await client.flush()
    async with connect() as client:
        await client.publish(subject, "x")
        await client.flush()
