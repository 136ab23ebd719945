"""Breaks lanes between real clients again and again under load, and judges what they heard.

`python -m tools.lane_faults --promotions 1000` runs on loopback; with `--place namespaces` the
gateway and each receiver have a network namespace of their own, for which one has to be root.
Exits with 1 if a message was lost silently, doubled or misordered, or routes did not go direct as
often as asked within the time; with 2 if it cannot be done here.
"""

import argparse
import asyncio
import json
import logging
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import uvloop
from tools.chaos import namespaces
from tools.lane_faults.crowd import WAYS
from tools.lane_faults.places import Apart, Loopback
from tools.lane_faults.report import Report
from tools.lane_faults.run import Options, Outcome, Run


def main(arguments: Sequence[str]) -> int:
    """Break lanes as often as asked; the exit status that says if all went well."""
    asked = parsed(arguments)
    if asked.place == Apart.name and not asked.inside:
        entered = ["-m", "tools.lane_faults", *arguments, "--inside", "--seed", str(asked.seed)]
        try:
            namespaces.enter(entered)
        except namespaces.NotPossible as error:
            print(f"namespaces are left out: {error}")
            return 2
    say = partial(print, file=sys.stderr if asked.json else sys.stdout, flush=True)
    # Connections are lost all the time.
    logging.getLogger("weft.client").setLevel(logging.ERROR)
    options = Options(asked.promotions, asked.seconds, asked.seed)
    say(f"seed {options.seed}, {asked.place}, {options.promotions} promotions")
    with tempfile.TemporaryDirectory(prefix="weft-lane-faults-") as folder:
        outcome = uvloop.run(_performed(options, asked.place, Path(folder), say))
        report = Report(outcome, options, asked.place)
    say("\n".join(report.lines()))
    if asked.json:
        print(json.dumps(report.figures()))
    return 0 if report.is_right else 1


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line as values."""
    parser = argparse.ArgumentParser(prog="lane_faults", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--promotions", type=int, default=1000, help="how often routes go direct (1000)"
    )
    parser.add_argument(
        "--seconds", type=float, default=1200.0, help="how long that may take at most (1200)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=random.SystemRandom().randrange(1 << 32),
        help="of the faults, as it was printed (another each time)",
    )
    parser.add_argument(
        "--place",
        choices=(Loopback.name, Apart.name),
        default=Loopback.name,
        help="where gateway and receivers are (loopback)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


async def _performed(
    options: Options, place: str, folder: Path, say: Callable[[str], None]
) -> Outcome:
    task = asyncio.current_task()
    if task is not None:
        # Whoever ends the tool ends its processes with it.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    kind = Apart if place == Apart.name else Loopback
    async with kind(len(WAYS)) as there:
        return await Run(options, there, folder).perform(say)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
