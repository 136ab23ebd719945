"""Weft's asyncio client on uvloop, relayed or by lanes; which of both it was is proven.

What goes by lanes is numbered by its publisher, from 2⁶³ on: the number of the very last message
says how many went by them in all, and a relayed one has a smaller number.
"""

import asyncio
from pathlib import Path
from typing import Any

import uvloop

import weft
from benchmarks.peers.lanes.driving import async_drive, async_find, async_requests
from benchmarks.peers.lanes.hearing import Heard
from benchmarks.peers.lanes.part import (
    ANSWER,
    QUESTION,
    SUBJECT,
    Figures,
    Part,
    say,
    wait_to_go,
    wait_until_over,
)
from benchmarks.peers.lanes.progress import AsyncProgress
from benchmarks.running import Failed
from weft.client.lanes.listener import LaneListener

FIRST_BY_LANE = 1 << 63


def publish(part: Part) -> Figures:
    """Publish, or ask, and measure."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_publish(part))


def receive(part: Part) -> dict[str, Any]:
    """Listen, or answer, until it is over."""
    if part.way != "unix":
        hide_unix_names()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_receive(part))


def hide_unix_names() -> None:
    """Have listeners announce only their port, as if publishers were on another machine."""
    listen = LaneListener.open

    async def open_quietly(self: LaneListener, host: str) -> None:
        await listen(self, host)
        self.unix = ""

    LaneListener.open = open_quietly  # type: ignore[method-assign]  # a user cannot ask for this


def lane_count(last: int) -> int:
    """How many messages went by lanes, of the number of the last; 0 if it was relayed."""
    return max(last - FIRST_BY_LANE, 0)


async def _publish(part: Part) -> Figures:
    async with weft.connect(part.at, direct=_direct(part), name="publisher") as connection:
        say("ready")
        spenders = await asyncio.to_thread(wait_to_go)
        if part.case == "request":
            return await async_requests(await _asking(connection, part), part, spenders)
        progress = AsyncProgress(part)
        await async_find(connection.publish, progress)
        await _go_direct(connection, part)
        figures = await async_drive(connection.publish, progress, part, spenders)
        await connection.flush()
        progress.close()
        return figures


async def _asking(connection: weft.AsyncConnection, part: Part) -> Any:
    await _go_direct(connection, part)
    is_relayed = part.way == "relayed"

    async def ask() -> None:
        answer = await connection.send_request(SUBJECT, QUESTION)
        if answer.payload != ANSWER or is_relayed != (answer.sequence < FIRST_BY_LANE):
            raise Failed("an answer came by another way than it should")

    return ask


async def _go_direct(connection: weft.AsyncConnection, part: Part) -> None:
    if part.way == "relayed":
        return
    await connection.direct(SUBJECT)
    expected = 1 if part.way == "unix" else 1 + part.receivers
    if (found := _tcp_connections()) != expected:
        raise Failed(f"{found} TCP connections instead of {expected}: the lanes go otherwise")


def _tcp_connections() -> int:
    """How many this process has."""
    lines = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
    known = {f"socket:[{line.split()[9]}]" for line in lines}
    # The folder is open only while it is listed.
    files = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return sum(str(path.readlink()) in known for path in files)


async def _receive(part: Part) -> dict[str, Any]:
    async with weft.connect(part.at, direct=_direct(part)) as connection:
        if part.case == "request":
            return await _answer(connection, part)
        over = asyncio.Event()
        heard = Heard(part, over.set)
        callback = heard.callback
        last: weft.AsyncReceived | None = None

        def hear(message: weft.AsyncReceived) -> None:
            nonlocal last
            last = message
            callback(message.payload)

        await connection.subscribe(SUBJECT, hear).ready()
        say("ready")
        await over.wait()
    return {**heard.facts(), "by_lane": 0 if last is None else lane_count(last.sequence)}


async def _answer(connection: weft.AsyncConnection, part: Part) -> dict[str, Any]:
    is_relayed = part.way == "relayed"

    async def answer(message: weft.AsyncReceived) -> None:
        is_as_it_should = is_relayed == (message.sequence < FIRST_BY_LANE)
        await message.respond(ANSWER if is_as_it_should else b"a question came otherwise")

    await connection.subscribe(SUBJECT, answer).ready()
    say("ready")
    await asyncio.to_thread(wait_until_over)
    return {}


def _direct(part: Part) -> Any:
    return "never" if part.way == "relayed" else "auto"
