"""An interrupt while Spark starts leaves no JVM behind, whenever it comes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

BOUND_S = 120.0
EVERY_S = 0.02
PROGRAM = """
import signal
import weft.spark

# Where tests run in the background of a shell it is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
weft.spark.session("interrupted", master="local[1]")
print("started", flush=True)
"""


def children_of(pid: int) -> list[int]:
    """The processes that a process has started, and what these have."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    direct = [int(each) for each in found]
    return direct + [deeper for each in direct for deeper in children_of(each)]


def is_running(pid: int) -> bool:
    """Say if a process is there, and not only its exit code."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_for(is_true: Callable[[], bool]) -> bool:
    until_s = time.monotonic() + BOUND_S
    while not is_true():
        if time.monotonic() > until_s:
            return False
        time.sleep(EVERY_S)
    return True


def is_java(pid: int) -> bool:
    """Say if a process is the JVM itself, and no longer the scripts that lead to it."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return b"org.apache.spark.deploy.SparkSubmit" in command


@pytest.fixture
def starting() -> Iterator[subprocess.Popen[bytes]]:
    """A program that starts Spark; nothing of it outlives the test."""
    process = subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    yield process
    process.kill()
    process.communicate()


def is_anything(pid: int) -> bool:
    """Say if a process was started."""
    return pid > 0


@pytest.mark.parametrize("is_reached", [is_anything, is_java], ids=["script", "java"])
def test_nothing_is_left_where_it_is_interrupted(
    starting: subprocess.Popen[bytes], is_reached: Callable[[int], bool]
) -> None:
    seen: set[int] = set()

    def has_come_so_far() -> bool:
        seen.update(children_of(starting.pid))
        return any(map(is_reached, seen))

    try:
        assert wait_for(has_come_so_far)
        starting.send_signal(signal.SIGINT)
        said, err = starting.communicate(timeout=BOUND_S)
        assert b"KeyboardInterrupt" in err
        assert said == b""
        assert wait_for(lambda: not any(map(is_running, seen)))
    finally:
        for pid in filter(is_running, seen):
            os.kill(pid, signal.SIGKILL)
