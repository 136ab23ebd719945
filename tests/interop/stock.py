"""Stock clients in processes of their own, told what to do and telling what happens to them."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).parent / "bayeux"
# Where `make interop` installs them.
PLACE = ROOT / "build" / "interop" / "bayeux"
WAIT_S = 30

Event = dict[str, Any]


def is_installed() -> bool:
    return shutil.which("node") is not None and (PLACE / "node_modules" / "faye").is_dir()


class Stock:
    """One client, and all that happened to it so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._unread: list[Event] = []
        self.events: list[Event] = []

    def do(self, what: str, channel: str = "", data: object = None) -> None:
        """Tell it to do something."""
        assert self._process.stdin is not None
        wish = {"do": what, "channel": channel, "data": data}
        self._process.stdin.write(json.dumps(wish).encode() + b"\n")

    async def happened(self, event: str, **facts: object) -> Event:
        """Wait for the next event of a kind that has these facts; others stay to be waited for."""
        wanted = {"event": event, **facts}
        while True:
            for found in self._unread:
                if wanted.items() <= found.items():
                    self._unread.remove(found)
                    return found
            await self._read(wanted)

    async def done(self, what: str, channel: str, data: object = None) -> Event:
        """Tell it to do something, and wait for the answer."""
        self.do(what, channel, data)
        past = {"subscribe": "subscribed", "unsubscribe": "unsubscribed", "publish": "published"}
        return await self.happened(past[what])

    async def messages(self, count: int) -> list[tuple[str, Any]]:
        """The channels and data of the next so many messages."""
        found = [await self.happened("message") for _ in range(count)]
        return [(each["channel"], each["data"]) for each in found]

    async def _read(self, wanted: Event) -> None:
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), WAIT_S)
        except TimeoutError:
            raise AssertionError(f"{wanted} did not happen, only {self.events[-20:]}") from None
        assert line, f"the client ended before {wanted}, after {self.events[-20:]}"
        event: Event = json.loads(line)
        self._unread.append(event)
        self.events.append(event)


@asynccontextmanager
async def stock(library: str, transport: str, url: str, **options: Any) -> AsyncIterator[Stock]:
    """Start a stock client, and wait until it has connected unless `is_refused`."""
    is_refused = options.pop("is_refused", False)
    script = shutil.copy(SOURCE / "client.mjs", PLACE)
    process = await asyncio.create_subprocess_exec(
        *("node", script, library, transport, url, json.dumps(options)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    client = Stock(process)
    try:
        if not is_refused:
            await client.happened("connect", successful=True, by=transport)
        yield client
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        # The transport of a process closes its pipes only when it is collected.
        process._transport.close()  # type: ignore[attr-defined]  # there is no other way
