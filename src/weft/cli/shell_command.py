"""A shell command that turns bytes into bytes, bounded in time."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping

from weft.errors import ResponderGone, TimedOut


def run_shell(command: str, given: bytes, timeout_s: float, variables: Mapping[str, str]) -> bytes:
    """What a command writes to its standard output when it is given these bytes to read.

    Raises:
        TimedOut: it took too long; it and all that it started were killed.
        ResponderGone: it ended with another code than 0.
    """
    # A group of its own, so that nothing it started can outlive it and hold its output open.
    with subprocess.Popen(  # noqa: S602  # the shell is what was asked for
        command,
        shell=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,
        env={**os.environ, **variables},
    ) as process:
        try:
            written, _ = process.communicate(given, timeout_s)
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
