"""Breaks a mesh of five real gateways again and again under load, and judges what clients heard.

`python -m tools.chaos --seconds 120` runs on loopback, with a small proxy in front of each gateway;
with `--place namespaces` each has a network namespace of its own, for which one has to be root.
Exits with 1 if a message was lost silently, doubled or misordered, or anything else is not as
promised; with 2 if it cannot be done here.
"""

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import uvloop
from tools.chaos import namespaces
from tools.chaos.audit import audited
from tools.chaos.loopback import Loopback
from tools.chaos.report import Report
from tools.chaos.run import Options, Outcome, Run


def main(arguments: Sequence[str]) -> int:
    """Break as long as asked; the exit status that says if all went well."""
    asked = parsed(arguments)
    if asked.place == namespaces.NAME and not asked.inside:
        try:
            namespaces.enter(["-m", "tools.chaos", *arguments, "--inside", "--seed", asked.seed])
        except namespaces.NotPossible as error:
            print(f"namespaces are left out: {error}")
            return 2
    say = partial(print, file=sys.stderr if asked.json else sys.stdout, flush=True)
    options = Options(
        seed=int(asked.seed),
        seconds=asked.seconds,
        max_links=asked.max_links,
        rate=asked.rate,
        is_journaling=asked.audit,
    )
    say(f"seed {options.seed}, {asked.place}, at most {options.max_links} links a gateway")
    with tempfile.TemporaryDirectory(prefix="weft-chaos-") as folder:
        outcome = uvloop.run(_performed(options, asked, Path(folder), say))
        report = Report(outcome, options, asked.place)
        say("\n".join(report.lines()))
        is_right = report.is_right
        if asked.audit:
            audit = audited(Path(folder), outcome.killed)
            say("\n".join(audit.lines()))
            is_right = is_right and audit.is_right
    if asked.json:
        print(json.dumps(report.figures()))
    return 0 if is_right else 1


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line as values."""
    parser = argparse.ArgumentParser(prog="chaos", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to break it (120)")
    parser.add_argument(
        "--seed",
        default=str(random.SystemRandom().randrange(1 << 32)),
        help="of the faults, as it was printed (another each time)",
    )
    parser.add_argument(
        "--place",
        choices=(Loopback.name, namespaces.NAME),
        default=Loopback.name,
        help="where the gateways are (loopback)",
    )
    parser.add_argument("--max-links", type=int, default=8, help="links a gateway (8)")
    parser.add_argument(
        "--rate", type=float, default=1000.0, help="messages a second, of all publishers (1000)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--audit", action="store_true", help="keep journals, and have Spark compare them"
    )
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


async def _performed(
    options: Options, asked: argparse.Namespace, folder: Path, say: Callable[[str], None]
) -> Outcome:
    task = asyncio.current_task()
    if task is not None:
        # Whoever ends the tool ends its gateways with it.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    kind = namespaces.Namespaces if asked.place == namespaces.NAME else Loopback
    async with kind(options.gateways) as place:
        return await Run(options, place, folder, say).perform()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
