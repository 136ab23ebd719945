"""Proves that the journal loses no acknowledged message, by crashes at random moments.

`python -m tools.crashes --kills 100 --cuts 20` kills gateways and cuts the power of their disks.
Exits with 1 if anything was lost, doubled or damaged. Where no disk can be mounted, the power cuts
are left out, and that is said.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tools.crashes.cuts import NotPossible, cut_often
from tools.crashes.kills import WHOLE_EVERY, kill_often
from tools.crashes.tally import Tally

# The end of a segment is synced nevertheless: there should be none.
UNSYNCED: dict[str, object] = {"journal.sync": "none", "journal.segment_bytes": 1 << 30}


def main(arguments: Sequence[str]) -> int:
    """Crash as often as asked; the exit status that says if all went well."""
    options = parsed(arguments)
    print(f"seed {options.seed}", flush=True)
    is_right = True
    if options.kills:
        is_right = _killed(options.kills, options.seed)
    if options.cuts:
        try:
            is_right = _cut(options.cuts, options.seed) and is_right
        except NotPossible as error:
            print(f"\npower cuts are left out: {error}")
    return 0 if is_right else 1


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line as values."""
    parser = argparse.ArgumentParser(prog="crashes", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="how often to kill (100)")
    parser.add_argument("--cuts", type=int, default=20, help="how often to cut the power (20)")
    parser.add_argument(
        "--seed",
        type=int,
        default=random.SystemRandom().randrange(1 << 32),
        help="of the moments, as it was printed (another each time)",
    )
    return parser.parse_args(arguments)


def _killed(kills: int, seed: int) -> bool:
    whole = len(range(1, kills, WHOLE_EVERY))
    print(f"\n{kills} kills, {whole} of them of the whole gateway", flush=True)
    with tempfile.TemporaryDirectory(prefix="weft-kills-") as folder:
        found = asyncio.run(kill_often(Path(folder), kills, seed))
    return _say(found)


def _cut(cuts: int, seed: int) -> bool:
    # Where nothing is synced, a cut must lose something: else it would prove nothing elsewhere.
    control = _cut_with(UNSYNCED, 1, seed, _ignore)
    print(
        f"\n1 power cut with journal.sync = none, which must lose something:"
        f" {len(control.lost):,} of {control.acknowledged:,} acknowledged"
    )
    print(f"\n{cuts} power cuts", flush=True)
    return _say(_cut_with({}, cuts, seed, partial(print, flush=True))) and bool(control.lost)


def _cut_with(
    settings: dict[str, object], cuts: int, seed: int, tell: Callable[[str], None]
) -> Tally:
    with tempfile.TemporaryDirectory(prefix="weft-cuts-") as folder:
        return asyncio.run(cut_often(Path(folder), cuts, seed, settings, tell))


def _say(found: Tally) -> bool:
    print("\n".join(f"  {line}" for line in found.lines()), flush=True)
    return found.is_right


def _ignore(_line: str) -> None:
    """Say nothing."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
