"""What a fuzz target is, and where its files are.

A target is a file `fuzz_NAME.py` beside this one that holds a `TARGET`.
"""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
CORPUS = FOLDER / "corpus"
CRASHES = CORPUS / "crashes"
# One input that takes longer than this is a fault of its own.
HANG_S = 10
MEMORY_LIMIT_BYTES = 1 << 30


class Broken(Exception):
    """An input made the decoder break a promise."""


class Found(Exception):
    """A fault: what happened, the input that shows it if there is one, and what was logged."""

    def __init__(self, what: str, data: Path | None, log: str) -> None:
        super().__init__(what)
        self.data = data
        self.log = log


@dataclass(frozen=True, slots=True)
class Target:
    """How one decoder is fuzzed.

    `outcome` says what an input comes to, a result or a refusal, in a text that is the same for
    both cores. Whatever it raises is a fault: Broken, or an exception the decoder may not raise.
    """

    outcome: Callable[[bytes], str]
    seeds: Callable[[], Iterable[bytes]]
    words: tuple[bytes, ...] = ()


def names() -> list[str]:
    """Every target there is."""
    return sorted(path.stem.removeprefix("fuzz_") for path in FOLDER.glob("fuzz_*.py"))


def load(name: str) -> Target:
    """The target of this name; weft is imported by it, so not before."""
    target = importlib.import_module(f"fuzz.fuzz_{name}").TARGET
    if not isinstance(target, Target):
        raise TypeError(f"fuzz_{name}.TARGET is a {type(target).__name__}, not a Target")
    return target


def said(error: Exception) -> str:
    """A refusal as outcomes tell it: class and text."""
    return f"{type(error).__name__}: {error}"
