"""Periodic output, for --watch."""

import sys
import time
from collections.abc import Callable

from rich.console import RenderableType
from rich.live import Live

from weft.cli.options.target import CommandTarget
from weft.cli.output import streams
from weft.cli.output.fitted_table import Cropped
from weft.errors import ConnectionLost

WATCH_S = 1.0


def watch(
    target: CommandTarget, tell: Callable[[], None], picture: Callable[[], RenderableType]
) -> None:
    """Refresh every second: draw `picture` on a terminal, or call `tell` without one.

    On the terminal a lost connection is displayed, and retried.
    """
    if target.is_json or not streams.is_terminal(sys.stdout):
        while True:
            tell()
            time.sleep(WATCH_S)
    with Live(console=streams.console(), screen=True, auto_refresh=False) as live:
        while True:
            try:
                shown = picture()
            except ConnectionLost as error:
                shown = f"{target.gateway}: {error}; trying again"
            live.update(Cropped(shown), refresh=True)
            time.sleep(WATCH_S)
