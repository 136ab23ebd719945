"""Measurements of a benchmark: throughput, and the latency of requests.

Closed loops: a publisher is never further ahead of its slowest subscriber than the window, so no
message is lost or queued without bound, and every counted message was received.
"""

import asyncio
import contextlib
import itertools
import math
import os
import time
from array import array
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import msgspec

from weft.cli.bench.plan import BenchPlan
from weft.cli.bench.worker import START_S, partner
from weft.cli.output.units import rate
from weft.client.asyncio.connection import AsyncConnection, AsyncSubscription
from weft.errors import ResponderGone, TimedOut

# A working subscriber reports its progress more often.
STALL_S = 15.0
# Requests before the measurement, which are not counted.
WARM_UP = 100

# Receives the elapsed seconds, and a note about the progress.
Tell = Callable[[float, str], None]


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """Messages from one publisher to all subscribers, and the time they took."""

    readers: int
    size: int
    messages: int
    seconds: float

    @property
    def message_rate(self) -> float:
        """Messages per second that were published, and received by every subscriber."""
        return self.messages / self.seconds

    @property
    def delivery_rate(self) -> float:
        """Messages per second received by all subscribers together."""
        return self.message_rate * self.readers


class RoundTrips(msgspec.Struct, frozen=True, kw_only=True):
    """Latency of sequential requests."""

    size: int
    requests: int
    seconds: float
    p50_s: float
    p99_s: float
    p999_s: float
    max_s: float


class Partners:
    """Progress of the subscribers or responder, by their own reports."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._received: dict[int, int] = {}
        self._changed = asyncio.Event()
        self._processes: list[asyncio.subprocess.Process] = []

    def add(self, process: asyncio.subprocess.Process) -> None:
        """Watch a process: a benchmark fails if it ends."""
        self._processes.append(process)

    def hear(self, number: int, received: int) -> None:
        """Record the progress of a partner."""
        self._received[number] = received
        self._changed.set()

    @property
    def slowest(self) -> int:
        """Number of messages that the slowest has received."""
        return min(self._received.values(), default=0)

    async def until_there(self) -> None:
        """Wait until all of them are subscribed."""
        await self._until(lambda: len(self._received) == self._count, START_S)

    async def until_received(self, count: int) -> None:
        """Wait until all of them have received `count` messages."""
        while self.slowest < count:
            await self._until(partial(self._is_past, self.slowest), STALL_S)

    def _is_past(self, known: int) -> bool:
        return self.slowest > known

    async def _until(self, is_so: Callable[[], bool], limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not is_so():
            self._changed.clear()
            gone = [each.returncode for each in self._processes if each.returncode is not None]
            if gone:
                raise ResponderGone(f"the other side of the benchmark ended with {gone[0]}")
            if time.monotonic() > deadline:
                raise TimedOut(
                    f"{len(self._received)} of {self._count} readers are there, the slowest with"
                    f" {self.slowest} messages, and nothing happened for {limit_s:g} s"
                )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._changed.wait()


async def measure_throughput(plan: BenchPlan, readers: int, tell: Tell) -> Throughput:
    """Publish to `readers` subscribers for the time of the plan.

    Raises:
        TimedOut: A subscriber did not receive the messages.
    """
    body = bytes(plan.size)
    subject = plan.subject("data")
    async with _together(plan, "read", readers) as (connection, partners):
        # The first step warms up both ends and is not counted.
        sent = 0
        start_s = 0.0
        while sent <= plan.step or time.perf_counter() - start_s < plan.seconds:
            for _ in range(plan.step):
                await connection.publish(subject, body)
            sent += plan.step
            if sent == plan.step:
                await partners.until_received(sent)
                start_s = time.perf_counter()
            await partners.until_received(sent - plan.window)
            passed_s = time.perf_counter() - start_s
            tell(passed_s, rate((sent - plan.step) / max(passed_s, 1e-9)))
        await partners.until_received(sent)
        seconds = time.perf_counter() - start_s
    return Throughput(readers=readers, size=plan.size, messages=sent - plan.step, seconds=seconds)


async def measure_requests(plan: BenchPlan, tell: Tell) -> RoundTrips:
    """Send sequential requests for the time of the plan."""
    body = bytes(plan.size)
    subject = plan.subject("request")
    times = array("d")
    async with _together(plan, "respond", 1) as (connection, _):
        for _ in range(WARM_UP):
            await connection.send_request(subject, body)
        start_s = now_s = time.perf_counter()
        while now_s - start_s < plan.seconds:
            await connection.send_request(subject, body)
            then_s, now_s = now_s, time.perf_counter()
            times.append(now_s - then_s)
            tell(now_s - start_s, rate(len(times) / (now_s - start_s)))
    ordered = sorted(times)
    return RoundTrips(
        size=plan.size,
        requests=len(ordered),
        seconds=now_s - start_s,
        p50_s=percentile(ordered, 0.5),
        p99_s=percentile(ordered, 0.99),
        p999_s=percentile(ordered, 0.999),
        max_s=ordered[-1],
    )


def percentile(ordered: Sequence[float], part: float) -> float:
    """Return the least value that is not exceeded by at least this part of the ordered values."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


@asynccontextmanager
async def _together(
    plan: BenchPlan, role: str, count: int
) -> AsyncIterator[tuple[AsyncConnection, Partners]]:
    """Yield a connection to measure with, and the partners in one process per spare CPU."""
    partners = Partners(count)
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(plan.target().connect())
        words = await stack.enter_async_context(connection.subscribe(plan.subject("progress")))
        await words.ready()
        listening = asyncio.create_task(_listen(words, partners))
        stack.push_async_callback(_end, listening)
        for numbers in shares(count, max(1, (os.cpu_count() or 2) - 1)):
            partners.add(await stack.enter_async_context(partner(plan, role, numbers)))
        await partners.until_there()
        yield connection, partners


async def _listen(words: AsyncSubscription, partners: Partners) -> None:
    async for word in words:
        partners.hear(word["reader"], word["received"])


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def shares(count: int, processes: int) -> list[range]:
    """Return the numbers 0 … count-1 as at most `processes` ranges of equal size."""
    processes = min(count, processes)
    cuts = [count * each // processes for each in range(processes + 1)]
    return [range(*pair) for pair in itertools.pairwise(cuts)]
