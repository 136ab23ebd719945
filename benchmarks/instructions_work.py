"""One piece of work for `benchmarks.instructions`, in a process that valgrind watches.

    python instructions_work.py CASE COUNT [ADDRESS]

Uses the public API of whichever weft the interpreter has, so that trees can be compared. What has
to happen in another process is done by the same script without valgrind.
"""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable

import weft

SUBJECT = "sensors.london.temp"
BODY = b"x" * 77
FIELDS = {"city": "London", "temp": 21.5, "count": 7, "ok": True, "station": "heathrow"}
# Bytes, not messages, bound what may wait: a burst of this many fits any default.
BURST = 20_000


async def publish(address: str, count: int, body: bytes | dict[str, object]) -> None:
    """Publish so many messages, and wait until the gateway has them."""
    async with weft.connect(address) as connection:
        for number in range(1, count + 1):
            await connection.publish(SUBJECT, body)
            if number % BURST == 0:
                await connection.flush()
        await connection.flush()


async def handle(address: str, count: int, *, is_async: bool = False) -> None:
    """Receive so many messages by a handler, plain or async."""
    done = asyncio.Event()
    left = count

    def plain(_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    async def awaited(_: object) -> None:
        plain(_)

    async with weft.connect(address) as connection:
        await connection.subscribe(SUBJECT, awaited if is_async else plain).ready()
        print("ready", flush=True)
        await done.wait()


async def iterate(address: str, count: int) -> None:
    """Receive so many messages by `async for`."""
    async with weft.connect(address) as connection:
        heard = connection.subscribe(SUBJECT)
        await heard.ready()
        print("ready", flush=True)
        left = count
        async for _ in heard:
            left -= 1
            if not left:
                break


def handle_blocking(address: str, count: int) -> None:
    """Receive so many messages by the handler of a blocking connection."""
    done = threading.Event()
    left = count

    def handler(_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    with weft.Connection(address) as connection:
        connection.subscribe(SUBJECT, handler)
        connection.flush()
        print("ready", flush=True)
        done.wait()


async def relay() -> None:
    """Be a gateway until standard input ends."""
    async with weft.Gateway("127.0.0.1:0", workers="inline") as gateway:
        print(gateway.address, flush=True)
        await asyncio.to_thread(sys.stdin.read)


def core(name: str, count: int) -> None:
    """Do a case of `benchmarks.cases` that often."""
    from benchmarks.cases import CASES  # noqa: PLC0415  # only where the tree is importable

    work, _ = CASES[name]()
    for _ in range(count):
        work()


CLIENT: dict[str, Callable[[str, int], Awaitable[None]]] = {
    "publish": lambda address, count: publish(address, count, BODY),
    "publish_fields": lambda address, count: publish(address, count, dict(FIELDS)),
    "handler": handle,
    "async_handler": lambda address, count: handle(address, count, is_async=True),
    "iterate": iterate,
}


def main(case: str, count: int, address: str) -> None:
    """Do the work."""
    if case == "relay":
        asyncio.run(relay())
    elif case == "blocking_handler":
        handle_blocking(address, count)
    elif case in CLIENT:
        asyncio.run(_done(CLIENT[case](address, count)))
    else:
        core(case, count)


async def _done(work: Awaitable[None]) -> None:
    await work


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
