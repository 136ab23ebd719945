"""Run a command, keep its output in a log, and show how far it has come.

Usage: progress.py TITLE LOG [--total N] -- COMMAND…

Lines such as `[3/65] name` of the command's output move the progress, as do pip's `Collecting
name` and `Processing …/name.whl` (with --total). On a terminal one line is rewritten; elsewhere a
line is printed for the start and one for the end. If the command fails, its whole output is printed
and its exit code returned. Needs nothing but Python: it runs before anything is installed.
"""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

_STEP = re.compile(r"\[\s*(\d+)/(\d+)\]\s+(.*)")
_PACKAGE = re.compile(r"(?:Collecting|Processing) (?:\S*/)?([A-Za-z0-9_.]+)")
_WIDTH = 79


class Step(NamedTuple):
    """How far the command has come: the number of this step, of how many, and its name."""

    number: int
    total: int
    name: str


class Steps:
    """Finds steps in the lines of a command's output."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._packages = 0

    def find(self, line: str) -> Step | None:
        """Return the step that the line announces, if it announces one."""
        if found := _STEP.match(line):
            return Step(int(found[1]), int(found[2]), found[3])
        if self._total and (found := _PACKAGE.match(line)):
            self._packages = min(self._packages + 1, self._total)
            return Step(self._packages, self._total, found[1])
        return None


class Line:
    """One line about the progress, rewritten in place on a terminal."""

    def __init__(self, title: str, screen: TextIO) -> None:
        self._title = title
        self._screen = screen
        self._is_terminal = screen.isatty()
        if not self._is_terminal:
            print(f"== {title}", file=screen, flush=True)

    def show(self, step: Step) -> None:
        """Show the step, on a terminal."""
        if self._is_terminal:
            text = f"== {self._title} [{step.number}/{step.total}] {step.name}"
            print(f"\r\x1b[K{text[:_WIDTH]}", end="", file=self._screen, flush=True)

    def close(self, seconds: float, failure: str = "") -> None:
        """Replace the progress by the outcome."""
        start = "\r\x1b[K" if self._is_terminal else ""
        outcome = failure or f"done in {seconds:.0f} s"
        print(f"{start}== {self._title}: {outcome}", file=self._screen, flush=True)


def run(command: Sequence[str], log: Path, steps: Steps, show: Callable[[Step], None]) -> int:
    """Run the command with its output in the log, show its steps, and return its exit code."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w", encoding="utf-8") as kept,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None  # noqa: S101  # it is a pipe
        for line in process.stdout:
            kept.write(line)
            step = steps.find(line)
            if step is not None:
                show(step)
    return process.returncode


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for."""
    split = arguments.index("--")
    title, log, *options = arguments[:split]
    total = int(options[1]) if options[:1] == ["--total"] else 0
    line = Line(title, sys.stdout)
    started = time.monotonic()
    code = run(arguments[split + 1 :], Path(log), Steps(total), line.show)
    line.close(time.monotonic() - started, f"failed with exit code {code}" if code else "")
    if code:
        sys.stderr.write(Path(log).read_text(encoding="utf-8"))
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print(file=sys.stderr)
        sys.exit(130)
