"""Bursts at full speed: who reads on loses nothing, and who does not is told why it was cut."""

import asyncio
import contextlib
import socket
import time
from pathlib import Path

import pytest
from tests.journeys.clients import LIMIT_S
from tests.journeys.running import RunningGateway, running

import weft
from weft.client.status import Gap, Status, What
from weft.errors import SlowReader, TimedOut
from weft.wire.frames import Kind, encode

BURST_S = 60.0


def burst(address: str, subject: str, count: int, size: int) -> None:
    """Write so many messages to a socket as fast as the gateway reads it."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=BURST_S) as sock:
        sock.sendall(encode(Kind.CONNECT, b"default"))
        frame = encode(Kind.MESSAGE, subject.encode(), bytes(size))
        at_once = max(1, 65_536 // len(frame))
        for start in range(0, count, at_once):
            sock.sendall(frame * min(at_once, count - start))
        sock.sendall(encode(Kind.PING))
        # What the gateway has to say is read, so that it has no reason to reset the connection.
        while sock.recv(65_536)[-32 + 4] != Kind.PONG:
            pass


async def until(condition: "asyncio.Event") -> None:
    async with asyncio.timeout(BURST_S):
        await condition.wait()


@pytest.mark.parametrize(("count", "size"), [(200_000, 128), (1500, 100_000)])
async def test_a_subscriber_that_reads_loses_nothing_of_a_burst(
    gateway: RunningGateway, subject: str, count: int, size: int
) -> None:
    heard, done = 0, asyncio.Event()
    gaps: list[Gap] = []

    def hear(_: weft.AsyncReceived) -> None:
        nonlocal heard
        heard += 1
        if heard == count:
            done.set()

    async with weft.connect(gateway.address) as client:
        await client.subscribe(subject, hear, on_gap=gaps.append).ready()
        await asyncio.to_thread(burst, gateway.address, subject, count, size)
        with contextlib.suppress(TimeoutError):
            await until(done)
        assert (heard, gaps) == (count, [])


async def test_a_group_of_workers_loses_no_job_and_gives_a_slow_one_less(
    gateway: RunningGateway, subject: str
) -> None:
    count, done = 6000, asyncio.Event()
    jobs = [0, 0, 0, 0]
    gaps: list[Gap] = []
    async with contextlib.AsyncExitStack() as stack:
        for number in range(len(jobs)):

            async def work(_: weft.AsyncReceived, number: int = number) -> None:
                if number == 0:
                    await asyncio.sleep(0.01)
                jobs[number] += 1
                if sum(jobs) == count:
                    done.set()

            worker = await stack.enter_async_context(weft.connect(gateway.address))
            await worker.subscribe(subject, work, group="workers", on_gap=gaps.append).ready()
        await asyncio.to_thread(burst, gateway.address, subject, count, 10_000)
        with contextlib.suppress(TimeoutError):
            await until(done)
        assert (sum(jobs), gaps) == (count, [])
        assert jobs[0] < count // 8, jobs


@pytest.mark.parametrize("is_standing_still", [False, True])
async def test_a_reader_that_was_cut_is_told_why_and_so_is_the_log(
    tmp_path: Path, is_standing_still: bool
) -> None:
    statuses: list[Status] = []
    gaps: list[Gap] = []
    with running(tmp_path, "[limits]\noutbox_bytes = 131_072") as narrow:
        async with (
            weft.connect(narrow.address, on_status=statuses.append) as reader,
            weft.connect(narrow.address) as publisher,
        ):
            # It is read from only as somebody takes what it got.
            slow = reader.subscribe("slow", on_gap=gaps.append, queue_bytes=65_536)
            await slow.ready()
            while not narrow.status()["services"]["default"]["status"]["dropped"]["slow"]:
                for _ in range(20):
                    await publisher.publish("slow", bytes(50_000))
                await publisher.flush()
            if is_standing_still:
                # Longer than the gateway waits with its last words.
                while narrow.status()["services"]["default"]["status"]["connections"] > 1:
                    await asyncio.sleep(0.1)
            async with asyncio.timeout(LIMIT_S):
                while not gaps:
                    await publisher.publish("slow", b"and on")
                    with contextlib.suppress(TimedOut):
                        await slow.next(0.2)
        (gap,) = gaps
        assert (gap.reason, gap.count) == ("reconnected", None)
        assert isinstance(gap.error, SlowReader)
        assert "the limit of 131072 (outbox_bytes)" in str(gap.error)
        told = [status for status in statuses if status.what is What.GAP]
        assert [status.error for status in told] == [gap.error]
        ends = time.monotonic() + LIMIT_S
        while "slow consumer" not in narrow.log.read_text() and time.monotonic() < ends:
            await asyncio.sleep(0.1)
        assert "slow consumer disconnected" in narrow.log.read_text()
