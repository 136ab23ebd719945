"""A shell command that turns bytes into bytes, bounded in time and in what it may write."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from typing import IO

from weft.cli.options.target import KEY_VARIABLE
from weft.errors import BadField, ResponderGone, TimedOut

# What the buffer of a connection holds: no longer answer can be sent. A gateway's own limit is
# lower, as a rule, and is told when the answer is published.
WRITTEN_MAX_BYTES = 8 << 20

_READ_BYTES = 64 << 10
# A selector takes no longer waits than its system can count.
_SELECT_MAX_S = 3600.0


def run_shell(command: str, given: bytes, timeout_s: float, variables: Mapping[str, str]) -> bytes:
    """What a command writes to its standard output when it is given these bytes to read.

    Raises:
        TimedOut: it took too long; it and all that it started were killed.
        BadField: it wrote more than can be sent; likewise.
        ResponderGone: it ended with another code than 0.
    """
    deadline_s = time.monotonic() + timeout_s
    # A group of its own, so that nothing it started can outlive it and hold its output open.
    with subprocess.Popen(  # noqa: S602  # the shell is what was asked for
        command,
        shell=True,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,
        env={**_environment(), **variables},
    ) as process:
        try:
            written = _exchange(process, given, deadline_s)
            process.wait(max(deadline_s - time.monotonic(), 0))
        except BaseException as error:
            # It may have ended by itself a moment ago.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimedOut(f"the command took longer than {timeout_s:g} s") from error
            raise
    if process.returncode != 0:
        raise ResponderGone(f"the command ended with {process.returncode}")
    return written


def _environment() -> dict[str, str]:
    """Ours but for the key, which is none of the program's business."""
    return {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}


def _exchange(process: subprocess.Popen[bytes], given: bytes, deadline_s: float) -> bytes:
    """Write and read at once, as either may have to wait for the other, until both ends close."""
    to_it, from_it = process.stdin, process.stdout
    if to_it is None or from_it is None:
        raise ValueError("the process has no pipes")
    left = memoryview(given)
    written = bytearray()
    os.set_blocking(to_it.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(to_it, selectors.EVENT_WRITE)
        selector.register(from_it, selectors.EVENT_READ)
        while selector.get_map():
            wait_s = deadline_s - time.monotonic()
            if wait_s <= 0:
                raise subprocess.TimeoutExpired(process.args, wait_s)
            for key, _ in selector.select(min(wait_s, _SELECT_MAX_S)):
                if key.fileobj is to_it:
                    left = _write(to_it, left)
                    pipe, is_done = to_it, not left
                else:
                    pipe, is_done = from_it, not _read(from_it, written)
                if is_done:
                    selector.unregister(pipe)
                    pipe.close()
    return bytes(written)


def _write(pipe: IO[bytes], left: memoryview) -> memoryview:
    """Write what the pipe takes; what is left after it, which is nothing if nobody reads."""
    try:
        return left[os.write(pipe.fileno(), left) :]
    except BrokenPipeError:
        return left[:0]


def _read(pipe: IO[bytes], written: bytearray) -> bool:
    """Read what there is; False at the end."""
    data = os.read(pipe.fileno(), _READ_BYTES)
    written += data
    if len(written) > WRITTEN_MAX_BYTES:
        raise BadField(
            f"the command wrote {len(written)} bytes or more, over the limit of {WRITTEN_MAX_BYTES}"
        )
    return bool(data)
