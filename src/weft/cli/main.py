"""Where the command `weft` begins: it works only with the extra `cli`, and says so."""

import os
import sys
from collections.abc import Callable, Sequence

from weft.cli.interrupts import quiet_interrupt


def main() -> None:
    """Carry out the command line of this process, and end it."""
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
    """Let a standard stream that is closed lead nowhere.

    Otherwise a socket would get its number, which uvloop does not survive, nor whoever writes to
    the stream. Standard input stays None in Python: it tells that there are no lines to read.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is taken, and that is this one; processes that are started
            # from here need it as much.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # Where there is no standard error, print() would take standard output instead.
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
