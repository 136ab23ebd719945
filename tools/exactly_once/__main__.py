"""Proves that a streaming query neither loses nor doubles a row, by kills at chosen moments.

`python -m tools.exactly_once --rows 1000000` runs a stateless and a windowed query, from one
gateway and from three, back to a gateway. Meanwhile drivers are killed, and gateways while they
write a segment, seal one, and release a batch. Exits with 1 if a row was lost or doubled.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.exactly_once.driver import Driver
from tools.exactly_once.gateway import Gateway
from tools.exactly_once.query import Plan
from tools.exactly_once.source import Source
from tools.exactly_once.tally import Tally, tally

NODES = ("london", "paris", "rome")
MOMENTS = ("writing", "sealing", "releasing")
# How long the messages take to be published: kills should come while they do.
SECONDS = 100.0
# A driver that has ended a batch is killed within this time.
_SOON_S = 1.5


def main(arguments: Sequence[str]) -> int:
    """Run every case; the exit status that says if all went well."""
    options = parsed(arguments)
    print(f"seed {options.seed}", flush=True)
    is_right = True
    for count in options.gateways:
        for query in options.queries:
            is_right = _case(query, count, options) and is_right
    return 0 if is_right else 1


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line as values."""
    parser = argparse.ArgumentParser(
        prog="exactly_once", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="how many to publish (1000000)")
    parser.add_argument(
        "--gateways", type=int, nargs="+", default=[1, 3], choices=[1, 3], help="to read from (1 3)"
    )
    parser.add_argument(
        "--queries", nargs="+", default=["copy", "windows"], choices=["copy", "windows"]
    )
    parser.add_argument("--driver-kills", type=int, default=5, help="in each case (5)")
    parser.add_argument("--gateway-kills", type=int, default=3, help="in each case (3)")
    parser.add_argument(
        "--seed",
        type=int,
        default=random.SystemRandom().randrange(1 << 32),
        help="of the moments, as it was printed (another each time)",
    )
    return parser.parse_args(arguments)


def _case(query: str, count: int, options: argparse.Namespace) -> bool:
    print(f"\n{query}, from {count} gateway{'s' if count > 1 else ''}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="weft-once-") as folder:
        gateways = [Gateway(Path(folder) / node, node) for node in NODES[:count]]
        try:
            found = _run(query, gateways, Path(folder), options)
        finally:
            for gateway in gateways:
                gateway.end()
    _say(found)
    print(f"  took            {time.monotonic() - began:>10,.0f} s", flush=True)
    return found.is_right


def _run(query: str, gateways: list[Gateway], folder: Path, options: argparse.Namespace) -> Tally:
    chance = random.Random(options.seed)  # noqa: S311  # to be repeated, not to be secret
    sink = gateways[0]
    one = len(gateways) == 1
    places = (
        ("path", str(sink.data))
        if one
        else ("gateways", ",".join(each.address for each in gateways))
    )
    driver = Driver(Plan(query, places, sink.address, str(folder / "checkpoint")), folder / "log")
    source = Source(gateways, options.rows, SECONDS)
    source.start()
    driver.start()
    kills = ["driver"] * options.driver_kills
    kills += [MOMENTS[number % len(MOMENTS)] for number in range(options.gateway_kills)]
    chance.shuffle(kills)
    for kill in kills:
        driver.wait_for_batch()
        time.sleep(chance.uniform(0.0, _SOON_S))
        if kill == "driver":
            driver.kill()
            driver.start()
            print("  killed the driver", flush=True)
        else:
            victim = sink if kill == "releasing" else chance.choice(gateways)
            is_hit = victim.kill_when(kill)
            print(
                f"  killed {victim.node} while {kill}{'' if is_hit else ': never seen'}", flush=True
            )
    source.join()
    source.end()
    driver.finish()
    for gateway in gateways:
        gateway.end()
    return tally(query, gateways, sink)


def _say(found: Tally) -> None:
    print(f"  messages read   {found.read:>10,}")
    print(f"  rows expected   {found.expected:>10,}")
    print(f"  rows written    {found.written:>10,}")
    for name, rows in (("lost", found.lost), ("doubled", found.doubled), ("wrong", found.wrong)):
        print(f"  {name:<15} {len(rows):>10,}{'   ' + str(rows[:3]) if rows else ''}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
