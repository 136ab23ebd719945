"""Progress of a long command, on standard error if that is a terminal."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from weft.cli.output import streams

# Drawing is slower than publishing: check the clock on each call, draw a few times a second.
_REDRAW_S = 0.1


class Bar:
    """Progress bar, or a counter if the total is unknown."""

    def __init__(self, title: str, total: float | None) -> None:
        self._next_s = 0.0
        self._bar: Progress | None = None
        self._task = TaskID(0)
        if streams.is_terminal(sys.stderr):
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[note]}", markup=False),
                TimeElapsedColumn(),
                console=streams.console(sys.stderr),
                transient=True,
                auto_refresh=False,
            )
            self._task = self._bar.add_task(title, total=total, note="")

    def reached(self, completed: float, note: str = "") -> None:
        """Set the progress, drawn now or with one of the next calls."""
        now_s = time.monotonic()
        if self._bar is not None and now_s >= self._next_s:
            self._next_s = now_s + _REDRAW_S
            self._bar.update(self._task, completed=completed, note=note)
            self._bar.refresh()

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
