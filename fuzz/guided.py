"""One coverage-guided run of a target: `python -m fuzz.guided NAME SECONDS`, with WEFT_PURE=1.

atheris sees Python bytecode only, so the core must be interpreted; and instrumented, or the run
would be blind and look like any other. What it finds new is kept in the target's corpus.
"""

import hashlib
import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped]  # atheris ships no types

from fuzz.targets import CORPUS, CRASHES, HANG_S, MEMORY_LIMIT_BYTES, Target, load

INPUT_MAX_BYTES = 4096


def main() -> None:
    """Fuzz until the time is up (exit 0) or a fault is found (any other)."""
    name, seconds = sys.argv[1:]
    target = _load_instrumented(name)
    folder = CORPUS / name
    _write_seeds(folder, target)
    words = CORPUS / f"{name}.dict"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_MAX_BYTES}",
        f"-timeout={HANG_S}",
        f"-rss_limit_mb={MEMORY_LIMIT_BYTES >> 20}",
        f"-artifact_prefix={CRASHES}/{name}-",
        f"-dict={words}",
    ]
    atheris.Setup([sys.argv[0], *options, str(folder)], target.outcome)
    atheris.Fuzz()


def _load_instrumented(name: str) -> Target:
    # weft puts its finder of sources first as it is imported, but atheris instruments only what
    # the finders after its own find. Once the finder is there, weft is imported anew behind it.
    import weft  # noqa: F401, PLC0415

    for module in list(sys.modules):
        if module.partition(".")[0] == "weft" and module != "weft._pure":
            del sys.modules[module]
    with atheris.instrument_imports(include=["weft"]):
        target = load(name)
    loader = type(sys.modules["weft.wire.message.codec"].__loader__).__name__
    if not loader.startswith("Atheris"):
        raise SystemExit("weft: the core is not instrumented; guiding needs WEFT_PURE=1")
    return target


def _write_seeds(folder: Path, target: Target) -> None:
    for seed in target.seeds():
        # Named as libFuzzer names its own, so that none is kept twice.
        digest = hashlib.sha1(seed, usedforsecurity=False).hexdigest()
        (folder / digest).write_bytes(seed)


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    main()
