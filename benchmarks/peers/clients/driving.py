"""Closed loops over a client: publish and wait for callbacks, or ask and wait for answers.

Publisher and subscriber are two connections of one process, which has a core to itself. No more
than a window of messages is on its way. What is published is bytes, or six typed fields: those are
JSON for clients that carry only bytes.
"""

import asyncio
import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

SUBJECT = "load.0"
BODY = bytes(128)
WINDOW = 8000
BATCH = 200
WARM_S = 0.3
REST_S = 0.0002
STALL_S = 10.0

Figures = dict[str, float]


class Task(NamedTuple):
    """What to measure, for how long, and at which port the broker is."""

    case: str
    port: int
    seconds: float

    @property
    def is_typed(self) -> bool:
        """Whether messages have fields instead of bytes."""
        return self.case == "typed"


class Heard:
    """What the callback has heard."""

    def __init__(self) -> None:
        self.count = 0

    def message(self, _: object) -> None:
        """A message came."""
        self.count += 1

    def fields(self, message: Any) -> None:
        """A message with six fields came: read them all."""
        _ = message["city"], message["temp"], message["number"]
        _ = message["is_dry"], message["wind"], message["station"]
        self.count += 1


def fields(number: int) -> dict[str, Any]:
    """Six typed fields."""
    return {
        "city": "London",
        "temp": 21.5,
        "number": number,
        "is_dry": True,
        "wind": 3.25,
        "station": 4711,
    }


def packed(number: int) -> bytes:
    """Six typed fields for a client that carries bytes."""
    return json.dumps(fields(number)).encode()


class Watch:
    """Takes the time of a loop, after it has warmed up."""

    def __init__(self, heard: Heard, seconds: float) -> None:
        self._heard = heard
        self._seconds = seconds
        self._ends = time.perf_counter() + WARM_S
        self._begun: tuple[float, float, int] | None = None

    def is_over(self) -> bool:
        """Whether enough was measured; asked once a batch."""
        now = time.perf_counter()
        if now < self._ends:
            return False
        if self._begun is None:
            self._begun = now, _cpu_s(), self._heard.count
            self._ends = now + self._seconds
            return False
        return True

    def figures(self) -> Figures:
        """What was done since it was warm."""
        if self._begun is None:
            raise RuntimeError("it never got warm")
        began, cpu, count = self._begun
        done = self._heard.count - count
        return {
            "count": done,
            "per_s": done / (time.perf_counter() - began),
            "cpu_us": (_cpu_s() - cpu) / done * 1e6,
        }


async def async_flow(
    publish: Callable[[str, Any], Awaitable[object]],
    heard: Heard,
    task: Task,
    make: Callable[[int], Any] = packed,
    flush: Callable[[], Awaitable[object]] | None = None,
) -> Figures:
    """Publish as fast as a window allows; `flush` is awaited after every batch."""
    watch = Watch(heard, task.seconds)
    sent = 0
    while not watch.is_over():
        if task.is_typed:
            for number in range(BATCH):
                await publish(SUBJECT, make(number))
        else:
            for _ in range(BATCH):
                await publish(SUBJECT, BODY)
        if flush is not None:
            await flush()
        sent += BATCH
        gives_up = time.perf_counter() + STALL_S
        while sent - heard.count > WINDOW:
            await asyncio.sleep(0)
            _refuse_after(gives_up, sent, heard)
    return watch.figures()


def blocking_flow(
    publish: Callable[[str, Any], object],
    heard: Heard,
    task: Task,
    make: Callable[[int], Any] = packed,
    rest: Callable[[], object] = lambda: time.sleep(REST_S),
) -> Figures:
    """Publish as fast as a window allows; `rest` is called while it is used up."""
    watch = Watch(heard, task.seconds)
    sent = 0
    while not watch.is_over():
        if task.is_typed:
            for number in range(BATCH):
                publish(SUBJECT, make(number))
        else:
            for _ in range(BATCH):
                publish(SUBJECT, BODY)
        sent += BATCH
        gives_up = time.perf_counter() + STALL_S
        while sent - heard.count > WINDOW:
            rest()
            _refuse_after(gives_up, sent, heard)
    return watch.figures()


async def async_requests(ask: Callable[[], Awaitable[object]], task: Task) -> Figures:
    """Ask one question after the other."""
    took: list[float] = []
    cpu = 0.0
    ends = time.perf_counter() + WARM_S + task.seconds
    warm = ends - task.seconds
    while (now := time.perf_counter()) < ends:
        if now < warm:
            cpu = _cpu_s()
        await ask()
        if now >= warm:
            took.append(time.perf_counter() - now)
    return _latencies(took, cpu)


def blocking_requests(ask: Callable[[], object], task: Task) -> Figures:
    """Ask one question after the other."""
    took: list[float] = []
    cpu = 0.0
    ends = time.perf_counter() + WARM_S + task.seconds
    warm = ends - task.seconds
    while (now := time.perf_counter()) < ends:
        if now < warm:
            cpu = _cpu_s()
        ask()
        if now >= warm:
            took.append(time.perf_counter() - now)
    return _latencies(took, cpu)


def _latencies(took: list[float], cpu: float) -> Figures:
    ordered = sorted(took)
    return {
        "count": len(took),
        "p50_us": statistics.median(ordered) * 1e6,
        "p99_us": ordered[len(ordered) * 99 // 100] * 1e6,
        "cpu_us": (_cpu_s() - cpu) / len(took) * 1e6,
    }


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system


def _refuse_after(gives_up: float, sent: int, heard: Heard) -> None:
    if time.perf_counter() > gives_up:
        raise RuntimeError(f"stalled: {heard.count} of {sent} messages came back")
