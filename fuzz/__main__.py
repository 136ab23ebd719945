"""Fuzzes every target for FUZZ_S seconds, then compares the cores: `python -m fuzz [TARGET …]`.

`python -m fuzz TARGET --replay FILE` tells what one input comes to in each core. Exits with 1 if
anything was found, with 2 if called wrongly.
"""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fuzz.comparison import compare, environment
from fuzz.targets import CORPUS, CRASHES, Found, names

_PROGRESS = re.compile(r"^#(\d+)\s.*\bcov: (\d+)", re.MULTILINE)
_WRITTEN = re.compile(r"Test unit written to (.+)$", re.MULTILINE)
_FAULT = re.compile(r"(?:Uncaught Python exception: ===\n|ERROR: libFuzzer: )(.+)")
_REFRESH_S = 0.25
# Starting, and writing down what was found, come on top of the seconds of a run.
_GRACE_S = 60


@dataclass(frozen=True, slots=True)
class Guided:
    """What a guided run did."""

    inputs: int
    edges: int

    def __str__(self) -> str:
        return f"{self.inputs:,} inputs, {self.edges} edges covered"


def main() -> int:
    """Fuzz the targets asked for, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(names())}")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="tell one input's outcomes")
    asked = parser.parse_args()
    if unknown := set(asked.targets) - set(names()):
        parser.error(f"there is no target {', '.join(unknown)}; there is {', '.join(names())}")
    if asked.replay is not None:
        if len(asked.targets) != 1:
            parser.error("--replay needs the one target that the file is for")
        if not asked.replay.is_file():
            parser.error(f"there is no file {asked.replay}")
        return _replay(asked.targets[0], asked.replay)
    try:
        seconds = int(os.environ.get("FUZZ_S", "20"))
    except ValueError:
        seconds = 0
    if seconds < 1:
        parser.error(f"FUZZ_S is whole seconds from 1, not {os.environ['FUZZ_S']!r}")
    _require_atheris()
    return max([_fuzz(name, seconds) for name in asked.targets or names()])


def _require_atheris() -> None:
    try:
        import atheris  # type: ignore[import-untyped]  # noqa: F401, PLC0415  # no types; optional
    except ImportError as error:
        version = ".".join(map(str, sys.version_info[:3]))
        raise SystemExit(
            f"weft: fuzzing needs atheris, which Python {version} cannot import ({error});"
            " with Python 3.11 'make fuzz' installs it"
        ) from error


def _fuzz(name: str, seconds: int) -> int:
    """Fuzz one target and print its line of the summary."""
    compared = 0
    try:
        guided = _guide(name, seconds)
        corpus = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
        for compared in compare(name, corpus, max(1, seconds // 2)):
            _show(f"{name:9} {compared:,} inputs come to the same in both cores")
    except Found as found:
        _show("")
        print(found.log, file=sys.stderr, flush=True)
        print(f"{name:9} FAILED: {found}", flush=True)
        if found.data is not None:
            command = f"{os.path.relpath(sys.executable)} -m fuzz {name} --replay"
            data = os.path.relpath(found.data)
            print(f"{'':9} input:     {data}\n{'':9} reproduce: {command} {data}", flush=True)
        return 1
    _show("")
    print(
        f"{name:9} ok: {guided.inputs:,} inputs guided by coverage ({guided.edges} edges),"
        f" {len(corpus):,} in the corpus; {compared:,} come to the same in both cores",
        flush=True,
    )
    return 0


def _guide(name: str, seconds: int) -> Guided:
    """Let coverage lead an interpreted run that grows the corpus."""
    (CORPUS / name).mkdir(parents=True, exist_ok=True)
    CRASHES.mkdir(exist_ok=True)
    log = CORPUS / f"{name}.log"
    start = time.monotonic()
    passed_s = 0.0
    with (
        log.open("wb") as output,
        subprocess.Popen(  # noqa: S603  # our own program and interpreter
            [sys.executable, "-m", "fuzz.guided", name, str(seconds)],
            env=environment(is_compiled=False),
            stdout=output,
            stderr=output,
        ) as process,
    ):
        try:
            while process.returncode is None and passed_s < seconds + _GRACE_S:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_REFRESH_S)
                passed_s = time.monotonic() - start
                _show(f"{name:9} {passed_s:3.0f} of {seconds} s: {_progress(log)}")
        finally:
            process.kill()
    if process.returncode != 0:
        raise _found_by_guide(process.returncode, log.read_text(errors="replace"))
    return _progress(log)


def _progress(log: Path) -> Guided:
    lines = _PROGRESS.findall(log.read_text(errors="replace"))
    return Guided(*map(int, lines[-1])) if lines else Guided(0, 0)


def _found_by_guide(code: int, log: str) -> Found:
    fault = _FAULT.search(log)
    written = _WRITTEN.search(log)
    return Found(
        fault[1] if fault else f"the guided run ended with {code}",
        Path(written[1]) if written else None,
        log[fault.start() :] if fault else log,
    )


def _replay(name: str, data: Path) -> int:
    outcomes = []
    for is_compiled in (False, True):
        title = "compiled" if is_compiled else "interpreted"
        print(f"== {title}", flush=True)
        run = subprocess.run(  # noqa: S603  # our own program and interpreter
            [sys.executable, "-m", "fuzz.answering", name, str(data)],
            env=environment(is_compiled=is_compiled),
            stdout=subprocess.PIPE,
            check=False,
        )
        sys.stdout.buffer.write(run.stdout)
        if run.returncode != 0:
            print(f"ended with {run.returncode}")
        outcomes.append((run.returncode, run.stdout))
    is_fault = outcomes[0] != outcomes[1] or outcomes[0][0] != 0
    print("== a fault" if is_fault else "== the same in both cores, and no fault")
    return int(is_fault)


def _show(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
