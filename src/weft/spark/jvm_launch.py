"""Launch of Spark's JVM such that an interrupt does not leave it running.

PySpark forgets the process it starts if it is interrupted before the JVM has answered, and removes
the folder for the answer: the JVM then fails to write there and keeps running unused.
"""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Time that a JVM has to remove its temporary files before it is killed.
TERMINATE_S = 5.0


@contextmanager
def ended_if_interrupted() -> Iterator[None]:
    """On ^C or an exit, end the JVM that the block started, and its child processes."""
    from pyspark import java_gateway  # noqa: PLC0415  # slow to import

    launched: list[subprocess.Popen[bytes]] = []

    def launch(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        # In its own process group, together with the scripts that start Java.
        with _interrupts_deferred():
            process = subprocess.Popen(*arguments, **options, process_group=0)  # noqa: S603
            launched.append(process)
        return process

    # PySpark returns the process only on success.
    names = vars(java_gateway)
    started_by = names["Popen"]
    names["Popen"] = launch
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        for process in launched:
            _end(process)
        if launched:
            _forget()
        raise
    finally:
        names["Popen"] = started_by


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Defer ^C to the end of the block; Python raises it in the main thread only."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        signal.raise_signal(signal.SIGINT)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate a process and its group; kill the remaining processes after TERMINATE_S."""
    try:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TERMINATE_S)
    finally:
        # Also after a second ^C: no process of the group may remain.
        _signal(process, signal.SIGKILL)
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # All processes of the group may have ended.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _forget() -> None:
    """Make the next session start a new JVM instead of using the ended one."""
    from pyspark import SparkContext  # noqa: PLC0415  # slow to import

    for name in ("_gateway", "_jvm", "_active_spark_context"):
        setattr(SparkContext, name, None)
