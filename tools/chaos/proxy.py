"""What stands in front of a gateway, so that its links can be broken without rights.

Whoever dials says in its first bytes who it is; nothing is passed on before that is known.
"""

import asyncio
import re
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self

READ_BYTES = 256 << 10
# The greeting of a gateway is no longer than that.
GREETING_MAX_BYTES = 4096


class Way(NamedTuple):
    """From one gateway to another."""

    source: int
    target: int

    @property
    def back(self) -> "Way":
        """The other way."""
        return Way(self.target, self.source)


class Weather:
    """Which ways are broken: no new links are let through, or bytes stop and nobody says so."""

    def __init__(self) -> None:
        self._refused: set[Way] = set()
        self._stopped: set[Way] = set()
        self._tunnels: set[Tunnel] = set()
        self._changed = asyncio.Condition()

    async def refuse(self, way: Way) -> None:
        """Cut all links between two gateways, and let no new ones through."""
        self._refused |= {way, way.back}
        for tunnel in list(self._tunnels):
            if way in (tunnel.way, tunnel.way.back):
                tunnel.cut()

    async def stop(self, *ways: Way) -> None:
        """Let no more bytes through."""
        self._stopped.update(ways)

    async def clear(self, *ways: Way) -> None:
        """Let everything through again."""
        self._refused.difference_update(ways)
        self._stopped.difference_update(ways)
        async with self._changed:
            self._changed.notify_all()

    def is_refused(self, way: Way) -> bool:
        """Say if new links are not let through."""
        return way in self._refused

    async def until_clear(self, way: Way) -> None:
        """Wait while bytes are stopped."""
        if way in self._stopped:
            async with self._changed:
                await self._changed.wait_for(lambda: way not in self._stopped)

    def enter(self, tunnel: "Tunnel") -> None:
        """Take note of a link."""
        self._tunnels.add(tunnel)

    def leave(self, tunnel: "Tunnel") -> None:
        """Forget a link."""
        self._tunnels.discard(tunnel)


class Tunnel:
    """One connection that was let through."""

    def __init__(self, way: Way, *writers: asyncio.StreamWriter) -> None:
        self.way = way
        self._writers = writers

    def cut(self) -> None:
        """End it as if the network did, both sides at once."""
        for writer in self._writers:
            writer.transport.abort()


class Proxy:
    """In front of one gateway; `address` is what others dial, `target` where it listens."""

    def __init__(self, number: int, weather: Weather, name: str) -> None:
        self._number = number
        self._weather = weather
        self._greeting = re.compile(re.escape(name.encode()) + rb"(\d+)")
        self._tasks: set[asyncio.Task[None]] = set()
        self.target = ("", 0)
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            # One that is cancelled at the end has nobody to tell.
            with suppress(OSError, asyncio.CancelledError):
                await self._let_through(reader, writer)
        finally:
            writer.transport.abort()

    async def _let_through(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        greeting = b""
        while (found := self._greeting.search(greeting)) is None:
            data = await reader.read(GREETING_MAX_BYTES)
            greeting += data
            if not data or len(greeting) > GREETING_MAX_BYTES:
                return
        way = Way(int(found[1]), self._number)
        if self._weather.is_refused(way):
            return
        there, back = await asyncio.open_connection(*self.target)
        tunnel = Tunnel(way, writer, back)
        self._weather.enter(tunnel)
        try:
            await self._weather.until_clear(way)
            if back.is_closing():
                return
            back.write(greeting)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._carry(reader, back, way))
                tasks.create_task(self._carry(there, writer, way.back))
        finally:
            self._weather.leave(tunnel)
            back.transport.abort()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way
    ) -> None:
        """Carry bytes one way until the connection ends there; then it ends the other way, too."""
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                await self._weather.until_clear(way)
                if writer.is_closing():
                    return
                writer.write(data)
                await writer.drain()
        # Nobody hears of the end, either, while nothing is let through. What was written before is
        # sent on: only the network cuts in the middle.
        await self._weather.until_clear(way)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
