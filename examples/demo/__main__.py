"""Sensors publish, a gateway keeps a journal of it, Spark counts and publishes what it finds.

`python -m examples.demo`, or `make demo`. It needs nothing that runs already, and leaves nothing
behind. Where nobody can see a picture, it prints a line every second instead.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from examples.demo.processes import RESULTS, gateway, job
from examples.demo.sensors import publish
from examples.demo.view import View
from rich.console import Console
from rich.live import Live

import weft

_EVERY_S = 1.0
# Spark has come up long before this, or never will.
_PATIENCE_S = 240


def main(arguments: Sequence[str]) -> int:
    """Run the demo; 0 if results came."""
    parser = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--results", type=int, help="end after so many results of the job")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="weft-demo-") as folder:
            return asyncio.run(_demo(Path(folder), options.results))
    except KeyboardInterrupt:
        return 0


async def _demo(folder: Path, enough: int | None) -> int:
    async with gateway(folder) as address, job(folder, address) as counting:
        view = View(address, folder / "data")
        async with asyncio.TaskGroup() as tasks:
            background = [
                tasks.create_task(publish(address)),
                tasks.create_task(_watch(address, view)),
            ]
            is_right = await _show(view, counting, enough)
            for task in background:
                task.cancel()
    if not is_right:
        print("the job failed:", (folder / "job.log").read_text()[-3000:], file=sys.stderr)
    return 0 if is_right else 1


async def _watch(address: str, view: View) -> None:
    """Hear what everybody can hear."""
    async with (
        weft.connect(address, service="weather", name="view") as connection,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(_hear(connection, "sensors.>", view.saw))
        tasks.create_task(_hear(connection, RESULTS, view.heard))


async def _hear(
    connection: weft.AsyncConnection, pattern: str, hear: Callable[[weft.Received], None]
) -> None:
    async for message in connection.subscribe(pattern):
        hear(message)


async def _show(view: View, counting: asyncio.subprocess.Process, enough: int | None) -> bool:
    """Draw until it is enough; False if the job ended, or never began."""
    console = Console()
    with Live(console=console, auto_refresh=False, transient=True) as live:
        seconds = 0
        while enough is None or view.results < enough:
            await asyncio.sleep(_EVERY_S)
            seconds += 1
            view.tick()
            if console.is_terminal:
                live.update(view.picture(), refresh=True)
            else:
                print(view.line(), flush=True)
            is_late = view.results == 0 and seconds * _EVERY_S > _PATIENCE_S
            if counting.returncode is not None or is_late:
                return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
