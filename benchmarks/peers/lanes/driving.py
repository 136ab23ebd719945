"""The loops of a publisher: as fast as a window allows, at a pace, one at a time; or requests.

Each is here twice: for libraries that are awaited, and for those that block.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from itertools import islice

from benchmarks.peers.lanes.bodies import END, PROBE, repeated, timed
from benchmarks.peers.lanes.hearing import STEP, latencies
from benchmarks.peers.lanes.part import SUBJECT, Figures, Part, Spenders
from benchmarks.peers.lanes.progress import AsyncProgress, Progress
from benchmarks.peers.lanes.spent import Watch

WINDOW = 8 * STEP
BATCH = 256
WARM_S = 0.3
PACE_S = 0.001
_PROBE_S = 0.01

AsyncPublish = Callable[[str, bytes], Awaitable[object]]
Publish = Callable[[bytes], object]


async def async_find(publish: AsyncPublish, progress: AsyncProgress) -> None:
    """Publish until everybody hears it."""
    while not progress.has_found_all():
        await publish(SUBJECT, PROBE)
        await asyncio.sleep(_PROBE_S)


async def async_drive(
    publish: AsyncPublish, progress: AsyncProgress, part: Part, spenders: Spenders
) -> Figures:
    """Publish what is measured, and that it is over."""
    if part.case == "flow":
        bodies = repeated(part.size)
        await _async_stretch(publish, progress, bodies, WARM_S)
        warm, watch = progress.sent, Watch(spenders)
        await _async_stretch(publish, progress, bodies, part.seconds)
    else:
        warm, watch = 0, Watch(spenders)
        await _async_timed(publish, progress, part)
    figures = watch.figures(progress.sent - warm, part.receivers)
    await publish(SUBJECT, END)
    return {**figures, "published": progress.sent}


async def async_requests(
    ask: Callable[[], Awaitable[object]], part: Part, spenders: Spenders
) -> Figures:
    """Ask one question after the other."""
    took: list[int] = []
    watch = Watch(spenders)
    ends = time.perf_counter() + part.seconds
    while time.perf_counter() < ends:
        began = time.perf_counter_ns()
        await ask()
        took.append(time.perf_counter_ns() - began)
    return {**watch.figures(len(took), 1), **latencies(took)}


def find(publish: Publish, progress: Progress) -> None:
    """Publish until everybody hears it."""
    while not progress.has_found_all():
        publish(PROBE)
        progress.look(_PROBE_S)


def drive(publish: Publish, progress: Progress, part: Part, spenders: Spenders) -> Figures:
    """Publish what is measured, and that it is over."""
    if part.case == "flow":
        bodies = repeated(part.size)
        _stretch(publish, progress, bodies, WARM_S)
        warm, watch = progress.sent, Watch(spenders)
        _stretch(publish, progress, bodies, part.seconds)
    else:
        warm, watch = 0, Watch(spenders)
        _timed(publish, progress, part)
    figures = watch.figures(progress.sent - warm, part.receivers)
    publish(END)
    return {**figures, "published": progress.sent}


def requests(ask: Callable[[], object], part: Part, spenders: Spenders) -> Figures:
    """Ask one question after the other."""
    took: list[int] = []
    watch = Watch(spenders)
    ends = time.perf_counter() + part.seconds
    while time.perf_counter() < ends:
        began = time.perf_counter_ns()
        ask()
        took.append(time.perf_counter_ns() - began)
    return {**watch.figures(len(took), 1), **latencies(took)}


async def _async_stretch(
    publish: AsyncPublish, progress: AsyncProgress, bodies: Iterator[bytes], seconds: float
) -> None:
    """Publish for some time, and wait until everything has come."""
    ends = time.perf_counter() + seconds
    # Receivers tell of whole steps only.
    while time.perf_counter() < ends or progress.sent % STEP:
        for body in islice(bodies, BATCH):
            await publish(SUBJECT, body)
        progress.sent += BATCH
        await progress.room(WINDOW)
    await progress.room(0)


async def _async_timed(publish: AsyncPublish, progress: AsyncProgress, part: Part) -> None:
    with progress.deaf() if part.case == "pace" else nullcontext():
        ends = time.perf_counter() + part.seconds
        while time.perf_counter() < ends:
            await publish(SUBJECT, timed(progress.sent, part.size))
            progress.sent += 1
            if part.case == "pace":
                await asyncio.sleep(PACE_S)
            else:
                await progress.room(0)
    await progress.room(0)


def _stretch(publish: Publish, progress: Progress, bodies: Iterator[bytes], seconds: float) -> None:
    """Publish for some time, and wait until everything has come."""
    ends = time.perf_counter() + seconds
    # Receivers tell of whole steps only.
    while time.perf_counter() < ends or progress.sent % STEP:
        for body in islice(bodies, BATCH):
            publish(body)
        progress.sent += BATCH
        progress.wait(WINDOW)
    progress.wait(0)


def _timed(publish: Publish, progress: Progress, part: Part) -> None:
    ends = time.perf_counter() + part.seconds
    while time.perf_counter() < ends:
        publish(timed(progress.sent, part.size))
        progress.sent += 1
        if part.case == "pace":
            time.sleep(PACE_S)
        else:
            progress.wait(0)
    progress.wait(0)
