"""Workers share requests, with asyncio: `python examples/request_reply.py` beside `weft serve`.

The workers are members of one queue group: each request goes to one of them, the least busy.
"""

import asyncio
import sys

import weft

GATEWAY = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7411"


async def work(name: str, ready: asyncio.Event) -> None:
    """Answer requests as a member of the group, until cancelled."""
    async with weft.connect(GATEWAY, service="quotes", name=name) as connection:
        requests = connection.subscribe("quotes.get", group="workers")
        await requests.ready()
        ready.set()
        async for request in requests:
            await request.respond(weft.Message(symbol=request["symbol"], price=101.5, by=name))


async def main() -> None:
    """Start two workers, ask them for a few quotes, and stop them."""
    ready = [asyncio.Event(), asyncio.Event()]
    async with asyncio.TaskGroup() as group:
        workers = [
            group.create_task(work(f"worker.{number}", event))
            for number, event in enumerate(ready, 1)
        ]
        for event in ready:
            await event.wait()
        async with weft.connect(GATEWAY, service="quotes", name="asker") as connection:
            for symbol in ("VOD", "BP", "RIO", "AZN"):
                answer = await connection.send_request(
                    "quotes.get", weft.Message(symbol=symbol), timeout=5.0
                )
                print(f"{answer['symbol']}: {answer['price']} from {answer['by']}")
        for worker in workers:
            worker.cancel()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except* weft.errors.Unreachable as unreachable:
        sys.exit(f"{unreachable.exceptions[0]}; is `weft serve` running there?")
