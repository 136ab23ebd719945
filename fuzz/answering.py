"""One core that says what inputs come to: `python -m fuzz.answering NAME`.

Reads a length as a u32 and so many bytes, over and over, and answers each with a line: `ok` and a
digest of the outcome, or `broken` and the exception. With a file as second argument it tells the
outcome of that one in full. It dies with a trace, not in silence, where the core crashes or hangs.
"""

import faulthandler
import hashlib
import os
import resource
import signal
import sys
from pathlib import Path

from fuzz.targets import HANG_S, MEMORY_LIMIT_BYTES, Target, load, said


def main() -> None:
    """Answer until there is no more input."""
    target = load(sys.argv[1])
    _check_core()
    faulthandler.enable()
    # The trace first, then what SIGALRM does by itself: it ends the process, even inside C.
    faulthandler.register(signal.SIGALRM, chain=True)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    if len(sys.argv) > 2:
        signal.alarm(HANG_S)
        print(target.outcome(Path(sys.argv[2]).read_bytes()))
        return
    while length := sys.stdin.buffer.read(4):
        data = sys.stdin.buffer.read(int.from_bytes(length, "little"))
        signal.alarm(HANG_S)
        print(_answer(target, data), flush=True)
        signal.alarm(0)


def _check_core() -> None:
    """Refuse to pass one core off as the other, as a missing extension would."""
    loaded = str(sys.modules["weft.wire.message.codec"].__file__)
    if loaded.endswith(".py") != (os.environ.get("WEFT_PURE") == "1"):
        raise SystemExit(f"weft: the other core was asked for, but {loaded} was loaded")


def _answer(target: Target, data: bytes) -> str:
    try:
        outcome = target.outcome(data)
    except Exception as error:  # any that comes out is a fault to report
        return f"broken {said(error)!a}"
    digest = hashlib.sha256(outcome.encode("utf-8", "surrogatepass")).hexdigest()
    return f"ok {digest}"


if __name__ == "__main__":
    main()
