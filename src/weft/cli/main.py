"""Entry point of the command `weft`, which needs the extra `cli`."""

import os
import sys
from collections.abc import Callable, Sequence

from weft.cli.interrupts import quiet_interrupt


def main() -> None:
    """Run the command line of this process, and exit."""
    _open_what_is_closed()
    with quiet_interrupt():
        run = _import_run()
    sys.exit(run(sys.argv[1:]))


def _import_run() -> Callable[[Sequence[str]], int]:
    """Import the command line; exit with a sentence if the extra `cli` is not installed."""
    try:
        from weft.cli.app import run  # noqa: PLC0415  # see main()
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("click", "rich"):
            raise
        sys.exit('weft: the command line needs more packages: pip install "weft-mesh[cli]"')
    return run


def _open_what_is_closed() -> None:
    """Open closed standard streams on /dev/null.

    Otherwise a socket would get their descriptor, which uvloop does not survive, and output would
    go to it. sys.stdin stays None: it means that there are no lines to read.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # open() takes the lowest free descriptor, which is this one; child processes need it,
            # too.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # Without sys.stderr print() would write to standard output instead.
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
