"""How long a page takes to import weft.js over a network with a round trip of 100 ms.

    python -m benchmarks.page_load

Each new browser imports it twice, the second time from a new page. The page is of the gateway's own
origin, and its connection is idle by then. The delay is that of a proxy: it holds the bytes of each
direction for half a round trip, and the first ones of a connection for one more, as TCP's handshake
would. `make browser` installs Chromium and what drives it.
"""

import asyncio
import statistics
import time

from tests.browser.chromium import browsing

import weft

ROUND_TRIP_S = 0.1
BROWSERS = 7
_SETTLE_S = 1.0
_READ_BYTES = 1 << 16
_IMPORT = """async () => {
    const began = performance.now();
    await import("/weft.js");
    const took = performance.now() - began;
    const files = performance.getEntriesByType("resource").filter((e) => e.name.endsWith(".js"));
    return [took, files.length, files.reduce((sum, e) => sum + e.transferSize, 0)];
}"""


class SlowProxy:
    """A TCP proxy that delays what it passes on."""

    def __init__(self, target: str) -> None:
        self._host, _, self._port = target.rpartition(":")
        self.connections = 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on."""
        self.connections += 1
        opened_at = time.monotonic() + ROUND_TRIP_S
        far_reader, far_writer = await asyncio.open_connection(self._host, int(self._port))
        await asyncio.gather(
            _passed_on(reader, far_writer, opened_at), _passed_on(far_reader, writer, opened_at)
        )


async def _passed_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, opened_at: float
) -> None:
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def write() -> None:
        while True:
            due, data = await waiting.get()
            await asyncio.sleep(due - time.monotonic())
            if not data:
                writer.close()
                return
            writer.write(data)

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        data = b"-"
        while data:
            try:
                data = await reader.read(_READ_BYTES)
            except OSError:
                data = b""
            began = max(time.monotonic(), opened_at)
            waiting.put_nowait((began + ROUND_TRIP_S / 2, data))


async def main() -> None:
    """Measure and print."""
    found: dict[str, list[float]] = {"first": [], "again": []}
    async with weft.Gateway(listen="127.0.0.1:0") as gateway:
        proxy = SlowProxy(gateway.address)
        server = await asyncio.start_server(proxy.take, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        for _ in range(BROWSERS):
            async with browsing() as context:
                for when, times in found.items():
                    page = await context.new_page()
                    await page.goto(f"http://{host}:{port}/healthz")
                    await asyncio.sleep(_SETTLE_S)
                    before = proxy.connections
                    took, files, size = await page.evaluate(_IMPORT)
                    times.append(took)
                    more = proxy.connections - before
                    print(f"{when}: {took:.0f} ms, {files} files, {size} B, {more} new connections")
                    await page.close()
        server.close()
    for when, times in found.items():
        print(f"{when}: median {statistics.median(times):.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
