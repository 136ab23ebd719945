"""Runs the benchmarks and prints their figures: `python -m benchmarks [NAME…] [--json]`."""

import argparse
import json
import platform
import sys
from types import ModuleType

from benchmarks import (
    bursts,
    compiled,
    idle,
    recovery,
    services,
    steady,
    stopped,
    subscriptions,
    tunnels,
    web_sockets,
)

BENCHMARKS: dict[str, ModuleType] = {
    "compiled": compiled,
    "bursts": bursts,
    "subscriptions": subscriptions,
    "stopped": stopped,
    "services": services,
    "recovery": recovery,
    "steady": steady,
    "tunnels": tunnels,
    "web_sockets": web_sockets,
    # The last, as it leaves many thousand sockets that the kernel keeps for a minute.
    "idle": idle,
}


def main() -> int:
    """Run what was asked for; 0 unless a benchmark could not run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    results: dict[str, object] = {"machine": _machine()}
    for name in options.names or BENCHMARKS:
        figures = BENCHMARKS[name].run()
        results[name] = figures
        if not options.json:
            print("\n".join(BENCHMARKS[name].lines(figures)), end="\n\n", flush=True)
    if options.json:
        print(json.dumps(results, indent=2))
    return 0


def _machine() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.platform(),
    }


if __name__ == "__main__":
    sys.exit(main())
