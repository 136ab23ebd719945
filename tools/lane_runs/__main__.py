"""Proves that lanes lose, double and misorder nothing, by runs with faults at random moments.

`python -m tools.lane_runs --seeds 10000` has real clients and a real gateway's core meet on a
network that is made up. Exits with 1 if anything was wrong. `--seed S --trace` shows one run again.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from tools.lane_runs.run import Result
from tools.lane_runs.runs import Sums, result_of, summed


def main(arguments: Sequence[str]) -> int:
    """Run as often as asked; the exit status that says if all went well."""
    options = parsed(arguments)
    if options.seed is not None:
        return _one(options.seed, options.trace)
    seeds = range(options.first, options.first + options.seeds)
    sums = summed(seeds, options.processes, _Teller(options.seeds).tell)
    print("\n".join(sums.lines()))
    return _say_wrong(sums)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line as values."""
    parser = argparse.ArgumentParser(prog="lane_runs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=100, help="how many runs (100)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--seed", type=int, help="this run only")
    parser.add_argument("--trace", action="store_true", help="with --seed: all that happened")
    parser.add_argument("--processes", type=int, default=1, help="how many at once (1)")
    return parser.parse_args(arguments)


class _Teller:
    """Says what is wrong as soon as it is found, and how far it is."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._done = 0

    def tell(self, result: Result) -> None:
        """One more is done."""
        self._done += 1
        for line in result.wrong():
            print(f"seed {result.seed}: {line}", flush=True)
        if self._done % 500 == 0:
            print(f"{self._done:,} of {self._seeds:,} runs", file=sys.stderr, flush=True)


def _one(seed: int, is_traced: bool) -> int:
    result = result_of(seed, is_traced=is_traced)
    print("\n".join(result.trace), file=sys.stderr)
    sums = Sums()
    sums.add(result)
    print("\n".join(sums.lines()))
    return _say_wrong(sums)


def _say_wrong(sums: Sums) -> int:
    for seed, lines in sums.wrong.items():
        print(f"\nseed={seed}: python -m tools.lane_runs --seed {seed} --trace")
        print("\n".join(f"  {line}" for line in lines))
    return 1 if sums.wrong else 0


if __name__ == "__main__":
    # The order of a set of bytes is one of those things that must be the same again.
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tools.lane_runs", *sys.argv[1:]])  # noqa: S606
    sys.exit(main(sys.argv[1:]))
