"""Sensors publish to one of three gateways; Spark counts; a busy route moves to a lane.

`python -m examples.demo`, or `make demo`. Needs no running gateway and cleans up after itself.
Without a terminal it prints a line every second in place of the display.
"""

import argparse
import asyncio
import functools
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from examples.demo.processes import HEARD_AT, RESULTS, SENSORS_AT, TICKS_AT, job, mesh
from examples.demo.sensors import publish
from examples.demo.ticker import TICKS, listen, tick
from examples.demo.view import View
from rich.console import Console
from rich.live import Live

import weft

_EVERY_S = 1.0
_ANSWER_S = 30.0
# Spark has started long before this time, or never will.
_PATIENCE_S = 400


def main(arguments: Sequence[str]) -> int:
    """Run the demo; return 0 if results arrived."""
    parser = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--results",
        type=int,
        help="exit after N results of the job, once the busy route is direct (default: never)",
    )
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="weft-demo-") as folder:
            return asyncio.run(_demo(Path(folder), options.results))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 0


async def _demo(folder: Path, enough: int | None) -> int:
    this = asyncio.current_task()
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Otherwise the child processes would outlive a closed terminal.
        asyncio.get_running_loop().add_signal_handler(number, lambda: this and this.cancel())
    async with mesh(folder) as addresses, job(folder, addresses[SENSORS_AT]) as counting:
        view = View(addresses, folder / SENSORS_AT)
        async with asyncio.TaskGroup() as tasks:
            background = [
                tasks.create_task(publish(addresses[SENSORS_AT])),
                tasks.create_task(listen(addresses[TICKS_AT], view.lane.heard)),
                tasks.create_task(tick(addresses[TICKS_AT])),
                *(tasks.create_task(_watch(*each, view)) for each in addresses.items()),
            ]
            is_right = await _show(view, counting, enough)
            for task in background:
                task.cancel()
    if not is_right:
        said = (folder / "job.log").read_text()[-3000:]
        print(f"{view.line()}\nthe job failed, or nothing came of it: {said}", file=sys.stderr)
    return 0 if is_right else 1


async def _watch(name: str, address: str, view: View) -> None:
    """Receive messages at one gateway, and its view of the mesh."""
    async with (
        weft.connect(address, service="weather", name="view") as connection,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(_ask(connection, "mesh", {}, view.gateways[name].told))
        if name == TICKS_AT:
            tasks.create_task(_ask(connection, "routes", {"subject": TICKS}, view.lane.told))
        if name == SENSORS_AT:
            # Subjects that begin with `_` stay in their gateway.
            tasks.create_task(_hear(connection, RESULTS, view.heard))
        else:
            saw = functools.partial(view.saw, name)
            tasks.create_task(_hear(connection, HEARD_AT[name], saw))


async def _ask(
    connection: weft.AsyncConnection,
    question: str,
    about: dict[str, str],
    hear: Callable[[weft.Received], None],
) -> None:
    while True:
        hear(await connection.send_request(f"_WEFT.ask.{question}", about, _ANSWER_S))
        await asyncio.sleep(_EVERY_S)


async def _hear(
    connection: weft.AsyncConnection, pattern: str, hear: Callable[[weft.Received], None]
) -> None:
    async for message in connection.subscribe(pattern):
        hear(message)


async def _show(view: View, counting: asyncio.subprocess.Process, enough: int | None) -> bool:
    """Draw until there are enough results; return False if the job ended or is late."""
    console = Console()
    with Live(console=console, auto_refresh=False, transient=True) as live:
        seconds = 0
        while enough is None or view.results < enough or not view.lane.is_direct:
            await asyncio.sleep(_EVERY_S)
            seconds += 1
            view.tick()
            if console.is_terminal:
                live.update(view.picture(console.size.height), refresh=True)
            else:
                print(view.line(), flush=True)
            # A subscriber to the ticks at another gateway has them relayed, as it should be.
            is_relayed = enough is not None and not view.lane.is_direct
            is_late = (view.results == 0 or is_relayed) and seconds * _EVERY_S > _PATIENCE_S
            if counting.returncode is not None or is_late:
                return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
