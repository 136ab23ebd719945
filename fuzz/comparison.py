"""The two cores side by side: every input must come to the same in both.

Each core runs in a process of its own, so one that crashes is a finding and not the end. The
compiled one runs on Python's debugging allocator, which notices writes past the end of a block and
fills what is not yet written, or no longer owned, with bytes that spoil an outcome.
"""

import hashlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from fuzz.mutations import mutated
from fuzz.targets import CORPUS, CRASHES, Found

_BATCH = 32
_WAIT_S = 30


def compare(name: str, corpus: Sequence[bytes], seconds: int) -> Iterator[int]:
    """Put the corpus, then mutations of it until the time is up, to both cores.

    Gives the number of inputs compared so far, again and again.

    Raises:
        Found: a core broke a promise or died, or the cores disagree.
    """
    deadline = time.monotonic() + seconds
    compared = 0
    with (
        Core(name, CORPUS / f"{name}-compiled.log", is_compiled=True) as compiled,
        Core(name, CORPUS / f"{name}-interpreted.log", is_compiled=False) as interpreted,
    ):
        for batch in _batches(corpus, deadline):
            fault = first_fault(batch, (compiled, interpreted))
            if fault is not None:
                data, what = fault
                digest = hashlib.sha1(data, usedforsecurity=False).hexdigest()
                path = CRASHES / f"{name}-compared-{digest}"
                path.write_bytes(data)
                logs = (core.log.read_text(errors="replace") for core in (compiled, interpreted))
                raise Found(what, path, "".join(logs))
            compared += len(batch)
            yield compared


def _batches(corpus: Sequence[bytes], deadline: float) -> Iterator[Sequence[bytes]]:
    for at in range(0, len(corpus), _BATCH):
        yield corpus[at : at + _BATCH]
    # Any seed will do: an input that finds something is kept.
    chance = random.Random()  # noqa: S311
    while time.monotonic() < deadline:
        yield [mutated(corpus, chance) for _ in range(_BATCH)]


def environment(*, is_compiled: bool) -> dict[str, str]:
    """The environment of a process that runs one core."""
    core = {"PYTHONMALLOC": "debug", "WEFT_PURE": "0"} if is_compiled else {"WEFT_PURE": "1"}
    return {**os.environ, "PYTHONUTF8": "1", **core}


class Core:
    """A process that answers for one core, and what it wrote to stderr."""

    def __init__(self, target: str, log: Path, *, is_compiled: bool) -> None:
        self.title = "compiled" if is_compiled else "interpreted"
        self.log = log
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(  # noqa: S603  # our own program and interpreter
                [sys.executable, "-m", "fuzz.answering", target],
                env=environment(is_compiled=is_compiled),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate(timeout=_WAIT_S)

    def send(self, inputs: Sequence[bytes]) -> None:
        """Hand over inputs; one that ends the process shows when the answers are read."""
        if self._process.stdin is None:
            raise TypeError("a core is started with a pipe to it")
        try:
            for data in inputs:
                self._process.stdin.write(len(data).to_bytes(4, "little") + data)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def answers(self, count: int) -> list[str]:
        """As many answers as were asked for; the last says how the process ended, if it did."""
        if self._process.stdout is None:
            raise TypeError("a core is started with a pipe from it")
        answers: list[str] = []
        while len(answers) < count:
            # Never waits for long: an input that hangs ends the process.
            line = self._process.stdout.readline()
            if not line:
                answers.append(f"ended with {self._process.wait(_WAIT_S)}")
                break
            answers.append(line.decode().rstrip("\n"))
        return answers


def first_fault(inputs: Sequence[bytes], cores: Sequence[Core]) -> tuple[bytes, str] | None:
    """The first input that a core breaks on or the cores disagree on, and what happened."""
    for core in cores:
        core.send(inputs)
    answers = [core.answers(len(inputs)) for core in cores]
    for data, *said in zip(inputs, *answers, strict=False):
        for core, answer in zip(cores, said, strict=True):
            if not answer.startswith("ok "):
                return data, f"{core.title}: {answer}"
        if len(set(said)) > 1:
            return data, "the cores come to different outcomes"
    return None
