"""Partner process of a benchmark: subscribers that count, or a responder.

Its arguments select the role, and it exits at the end of its standard input: also when the process
that started it is killed.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import uvloop

from weft.cli.bench.plan import BenchPlan
from weft.cli.errors import sentence_of
from weft.cli.output import streams
from weft.errors import WeftError

START_S = 30.0
END_S = 5.0


@asynccontextmanager
async def partner(
    plan: BenchPlan, role: str, numbers: range
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a process with one connection for each number, and stop it with the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", __name__, role, str(numbers.start), str(numbers.stop)),
        msgspec.json.encode(plan).decode(),
        stdin=asyncio.subprocess.PIPE,
        # ^C is for the measuring process: this one exits after it.
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(END_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def read(plan: BenchPlan, number: int) -> None:
    """Count messages, and report after every step; the first report means subscribed."""
    async with (
        plan.target().connect() as connection,
        connection.subscribe(plan.subject("data")) as messages,
    ):
        await messages.ready()
        progress = plan.subject("progress")
        await connection.publish(progress, {"reader": number, "received": 0})
        received = 0
        async for _ in messages:
            received += 1
            if received % plan.step == 0:
                await connection.publish(progress, {"reader": number, "received": received})


async def respond(plan: BenchPlan, number: int) -> None:
    """Answer every request with its own body."""
    async with (
        plan.target().connect() as connection,
        connection.subscribe(plan.subject("request")) as requests,
    ):
        await requests.ready()
        await connection.publish(plan.subject("progress"), {"reader": number, "received": 0})
        async for request in requests:
            await request.respond(request.payload)


ROLES = {"read": read, "respond": respond}


async def take_part(role: str, numbers: range, plan: BenchPlan) -> None:
    """Run subscribers or responders of these numbers until the end of standard input."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ROLES[role](plan, number)) for number in numbers]
        await ended.wait()
        for task in tasks:
            task.cancel()


def main() -> None:
    """Run the role in the arguments."""
    role, start, stop, plan = sys.argv[1:]
    numbers = range(int(start), int(stop))
    try:
        uvloop.run(take_part(role, numbers, msgspec.json.decode(plan, type=BenchPlan)))
    except* WeftError as failed:
        streams.news(sentence_of(failed.exceptions[0]))
        sys.exit(1)


if __name__ == "__main__":
    main()
