"""Where the command `weft` begins: it works only with the extra `cli`, and says so."""

import sys

try:
    from weft.cli.command_line import run
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("click", "rich"):
        raise
    print('weft: the command line needs more packages: pip install "weft[cli]"', file=sys.stderr)
    sys.exit(1)


def main() -> None:
    """Carry out the command line of this process, and end it."""
    sys.exit(run(sys.argv[1:]))
