"""Processes of the demo: three gateways, one with a journal, and a Spark job that reads it."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

RESULTS = "_WEFT.PIPELINE.rates"
WINDOW_S = 5

# Sensors publish to the first gateway, which has a journal; subscribers are at the others.
SENSORS_AT = "london"
HEARD_AT = {"paris": "sensors.*.temp", "rome": "sensors.*.wind"}

# Neither remote subscribers nor a journal need the ticks, so their route may be direct.
TICKS_AT = "rome"

_READY = re.compile(r" is ready on (127\.0\.0\.1:\d+);")
_SETTINGS = """\
name = "{name}"
listen = "127.0.0.1:0"
services = ["weather"]
data = "{data}"

[mesh]
join = {join}
"""
_JOURNAL = """
[journal]
patterns = ["sensors.>"]
# Small, to show segments being sealed.
segment_bytes = 500000
"""
_END_S = 15.0


@asynccontextmanager
async def mesh(folder: Path) -> AsyncIterator[dict[str, str]]:
    """Start gateways of one mesh, each with a data folder of its name; yield their addresses."""
    addresses: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        for name in (SENSORS_AT, *HEARD_AT):
            joined = list(addresses.values())
            settings = _SETTINGS.format(name=name, data=folder / name, join=json.dumps(joined))
            if name == SENSORS_AT:
                settings += _JOURNAL
            file = folder / f"{name}.toml"
            file.write_text(settings)
            addresses[name] = await stack.enter_async_context(_gateway(file))
        yield addresses


@asynccontextmanager
async def _gateway(settings: Path) -> AsyncIterator[str]:
    """Run `weft serve`; yield its address."""
    log = settings.with_suffix(".log")
    async with _running("serve", "--config", str(settings), log=log) as process:
        if process.stdout is None:
            raise RuntimeError("the gateway has no output")
        ready = _READY.search((await process.stdout.readline()).decode())
        if ready is None:
            raise RuntimeError(f"the gateway did not start: {log.read_text()[-3000:]}")
        yield ready[1]


@asynccontextmanager
async def job(folder: Path, address: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `weft pipeline run rates --stream`, which publishes its results."""
    command = (
        *("pipeline", "run", "rates", "--stream", "--trigger", "1s"),
        *("--path", str(folder / SENSORS_AT), "--service", "weather", "--subject", "sensors.>"),
        *("--set", f"window_s={WINDOW_S}", "--set", "watermark_s=1"),
        *("--gateway", address, "--out", RESULTS, "--checkpoint", str(folder / "checkpoint")),
    )
    async with _running(*command, log=folder / "job.log") as process:
        yield process


@asynccontextmanager
async def _running(*command: str, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "weft.cli", *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            # ^C is for the demo, which then ends its child processes.
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
