"""How many instructions a message takes, which a busy machine does not change.

    python -m benchmarks.instructions [CASE …] [--against TREE] [--json]

Each case runs twice under `valgrind --tool=callgrind`, with a count and with three times as many;
the difference is what the messages took, without the start. Cases of the core repeat within a few
instructions. Those with sockets depend a little on how much each read finds: within about 2 %.

With --against the same is done with another checkout, whose virtual environment must be built.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import Progress

from benchmarks.cases import CASES
from benchmarks.instructions_work import CLIENT

HERE = Path(__file__).resolve().parent.parent
SCRIPT = Path(__file__).with_name("instructions_work.py")
# Messages in a run with sockets, and calls in one of the core.
MESSAGES = 20_000
CALLS = 20
TIMES = 3
WAIT_S = 300
RECEIVING = ("handler", "async_handler", "iterate", "blocking_handler")
SOCKETS = ("relay", "blocking_handler", *CLIENT)
NAMES = (*CASES, *SOCKETS)


class Tree:
    """A checkout with its virtual environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.python = root / ".venv/bin/python"
        if not self.python.exists():
            raise SystemExit(f"{self.python} does not exist: run 'make dev' in {root}")

    def instructions(self, case: str) -> float:
        """How many instructions one message of a case takes."""
        if case in CASES:
            operations = CASES[case]()[1]
            few, many = (self._counted(case, CALLS * times) for times in (1, TIMES))
            return (many - few) / (CALLS * (TIMES - 1) * operations)
        few, many = (self._counted(case, MESSAGES * times) for times in (1, TIMES))
        return (many - few) / (MESSAGES * (TIMES - 1))

    def _counted(self, case: str, count: int) -> int:
        """The instructions of one whole process."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "callgrind")
            tool = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}"]
            if case in CASES:
                with self._run([*tool, *self._work(case, count)]) as process:
                    _end(process)
            elif case == "relay":
                with self._run([*tool, *self._work("relay", count)]) as gateway:
                    address = _line(gateway)
                    with self._run(self._work("handler", count, address)) as reader:
                        _line(reader)
                        with self._run(self._work("publish", count, address)) as writer:
                            _end(writer)
                        _end(reader)
                    _end(gateway)
            else:
                self._beside_a_gateway(tool, case, count)
            return _total(out)

    def _beside_a_gateway(self, tool: list[str], case: str, count: int) -> None:
        with self._run(self._work("relay", 0)) as gateway:
            address = _line(gateway)
            with self._run([*tool, *self._work(case, count, address)]) as client:
                if case in RECEIVING:
                    _line(client)
                    with self._run(self._work("publish", count, address)) as writer:
                        _end(writer)
                _end(client)
            _end(gateway)

    def _work(self, case: str, count: int, *more: str) -> list[str]:
        return [str(self.python), str(SCRIPT), case, str(count), *more]

    @contextmanager
    def _run(self, command: list[str]) -> Iterator[subprocess.Popen[str]]:
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONHASHSEED": "0"}
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def _line(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline().strip() if process.stdout else ""
    if not line:
        raise SystemExit(f"{process.args!r} ended with {process.wait()}")
    return line


def _end(process: subprocess.Popen[str]) -> None:
    """Let a process end, which may wait for the end of its input."""
    process.communicate(timeout=WAIT_S)
    if process.returncode:
        raise SystemExit(f"{process.args!r} ended with {process.returncode}")


def _total(out: Path) -> int:
    for line in out.read_text().splitlines():
        if line.startswith("totals:"):
            return int(line.split()[1])
    raise SystemExit(f"valgrind wrote no totals to {out}")


def _rows(names: list[str], trees: list[Tree]) -> Iterator[tuple[str, list[float]]]:
    with Progress(transient=True) as progress:
        task = progress.add_task("", total=len(names) * len(trees))
        for name in names:
            figures = []
            for tree in trees:
                progress.update(task, description=f"{name}, {tree.root.name}")
                figures.append(tree.instructions(name))
                progress.advance(task)
            yield name, figures


def main() -> int:
    """Measure what was asked for, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions")
    parser.add_argument("names", nargs="*", metavar="CASE", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--against", type=Path, metavar="TREE", help="another checkout")
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no case {unknown[0]!r}; there are {', '.join(NAMES)}")
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed: apt-get install valgrind")
    roots = [HERE] if options.against is None else [options.against.resolve(), HERE]
    trees = [Tree(root) for root in roots]
    if not options.json:
        print(f"{'instructions a message':<24}" + "".join(f"{t.root.name:>12}" for t in trees))
    for name, figures in _rows(options.names or list(NAMES), trees):
        if options.json:
            print(json.dumps({"case": name, "instructions": figures}), flush=True)
            continue
        change = f"{figures[-1] / figures[0] - 1:>+9.1%}" if len(figures) > 1 else ""
        print(f"{name:<24}" + "".join(f"{each:>12,.0f}" for each in figures) + change, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
