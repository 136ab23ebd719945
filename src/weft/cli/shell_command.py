"""Shell command with input and output as bytes, limited in time and output."""

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

# Size of a connection's send buffer, the longest possible answer. A gateway's own limit is usually
# lower, and is reported when the answer is published.
WRITTEN_MAX_BYTES = 8 << 20

_READ_BYTES = 64 << 10
# Longest wait of a selector.
_SELECT_MAX_S = 3600.0


def run_shell(command: str, given: bytes, timeout_s: float, variables: Mapping[str, str]) -> bytes:
    """Return the standard output of a command that reads these bytes.

    Raises:
        TimedOut: The command and its child processes were killed after `timeout_s`.
        BadField: Output over WRITTEN_MAX_BYTES; likewise.
        ResponderGone: Exit status other than 0.
    """
    deadline_s = time.monotonic() + timeout_s
    # In its own process group, so that child processes cannot outlive it and hold its output open.
    with subprocess.Popen(  # noqa: S602  # the user gave a shell command
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
            # The process may have ended already.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimedOut(f"the command took longer than {timeout_s:g} s") from error
            raise
    if process.returncode != 0:
        raise ResponderGone(f"the command ended with {process.returncode}")
    return written


def _environment() -> dict[str, str]:
    """Return the environment without the key, which the program must not inherit."""
    return {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}


def _exchange(process: subprocess.Popen[bytes], given: bytes, deadline_s: float) -> bytes:
    """Write and read concurrently, as either may block, until both pipes are closed."""
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
    """Write as much as the pipe takes; return the rest, empty if the reader has closed it."""
    try:
        return left[os.write(pipe.fileno(), left) :]
    except BrokenPipeError:
        return left[:0]


def _read(pipe: IO[bytes], written: bytearray) -> bool:
    """Read available output; return False at the end."""
    data = os.read(pipe.fileno(), _READ_BYTES)
    written += data
    if len(written) > WRITTEN_MAX_BYTES:
        raise BadField(
            f"the command wrote {len(written)} bytes or more, over the limit of {WRITTEN_MAX_BYTES}"
        )
    return bool(data)
