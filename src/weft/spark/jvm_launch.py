"""Spark's JVM, started so that an interrupt does not leave it behind.

PySpark forgets the process it starts if it is interrupted before that has answered, and removes the
folder for the answer: the JVM then fails to write there and lives on unused.
"""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# How long a JVM has to remove its temporary files before it is killed.
TERMINATE_S = 5.0


@contextmanager
def ended_if_interrupted() -> Iterator[None]:
    """End the JVM that is started meanwhile, and what that starts, on ^C or an exit."""
    from pyspark import java_gateway  # noqa: PLC0415  # slow to import

    launched: list[subprocess.Popen[bytes]] = []

    def launch(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        # In a group of its own, together with the scripts that lead to Java.
        with _interrupts_deferred():
            process = subprocess.Popen(*arguments, **options, process_group=0)  # noqa: S603
            launched.append(process)
        return process

    # PySpark returns the process only when all has gone well.
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
    """Let ^C wait until the end of the block; it is only ever raised in the main thread."""
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
    """Terminate a process and its group; kill what is left of it after a while."""
    try:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TERMINATE_S)
    finally:
        # Also if a second ^C came: nothing of the group is to be left.
        _signal(process, signal.SIGKILL)
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # Whatever was in the group may have ended by itself.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _forget() -> None:
    """Have the next session start a JVM of its own instead of asking the one that was ended."""
    from pyspark import SparkContext  # noqa: PLC0415  # slow to import

    for name in ("_gateway", "_jvm", "_active_spark_context"):
        setattr(SparkContext, name, None)
