"""What the demo starts: a gateway that keeps a journal, and a job of Spark that reads it."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

RESULTS = "_WEFT.PIPELINE.rates"
WINDOW_S = 5

_READY = re.compile(r" is ready on (127\.0\.0\.1:\d+);")
_SETTINGS = """\
name = "demo"
listen = "127.0.0.1:0"
services = ["weather"]
data = "{data}"

[journal]
patterns = ["sensors.>"]
# Small, so that one sees segments being sealed.
segment_bytes = 500000
"""
_END_S = 15.0


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[str]:
    """`weft serve` with data in a folder; its address."""
    settings = folder / "weft.toml"
    settings.write_text(_SETTINGS.format(data=folder / "data"))
    async with _running("serve", "--config", str(settings), log=folder / "gateway.log") as process:
        if process.stdout is None:
            raise RuntimeError("the gateway says nothing")
        ready = _READY.search((await process.stdout.readline()).decode())
        if ready is None:
            raise RuntimeError(f"the gateway did not start; see {folder / 'gateway.log'}")
        yield ready[1]


@asynccontextmanager
async def job(folder: Path, address: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`weft pipeline run rates --stream`, which publishes what it finds."""
    command = (
        *("pipeline", "run", "rates", "--stream", "--trigger", "1s"),
        *("--path", str(folder / "data"), "--service", "weather", "--subject", "sensors.>"),
        *("--set", f"window_s={WINDOW_S}", "--set", "watermark_s=1"),
        *("--gateway", address, "--out", RESULTS, "--checkpoint", str(folder / "checkpoint")),
    )
    async with _running(*command, log=folder / "job.log") as process:
        yield process


@asynccontextmanager
async def _running(*command: str, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "weft.cli", *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            # ^C is for the demo, which then ends them.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.communicate(), _END_S)
            except TimeoutError:
                process.kill()
                await process.wait()
