import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from weft.gateway.worker.watchdog import REPORTED_S, TICK_S, Usage, Watchdog, usage_of

LIMIT_S = 10.0
TICKS = int(LIMIT_S / TICK_S)


class Kernel:
    """What is told of a process, in place of /proc."""

    def __init__(self, state: str = "S", cpu_s: float = 0.0) -> None:
        self.usage: Usage | None = Usage(state, cpu_s)

    def look(self, pid: int) -> Usage | None:
        assert pid == 7
        return self.usage


def verdicts(watchdog: Watchdog, count: int, limit_s: float = LIMIT_S) -> list[bool]:
    return [watchdog.tick(limit_s) for _ in range(count)]


def test_a_process_that_is_silent_for_the_limit_hangs() -> None:
    watchdog = Watchdog(7, Kernel().look)
    assert verdicts(watchdog, TICKS + 1) == [False] * TICKS + [True]
    assert watchdog.silent_s == LIMIT_S


def test_one_word_begins_the_count_again() -> None:
    watchdog = Watchdog(7, Kernel().look)
    verdicts(watchdog, TICKS)
    watchdog.heard()
    assert verdicts(watchdog, TICKS + 1) == [False] * TICKS + [True]


def test_a_limit_of_0_is_never_reached() -> None:
    watchdog = Watchdog(7, Kernel().look)
    assert verdicts(watchdog, 1000, 0.0) == [False] * 1000


def test_silence_is_reported_before_the_limit() -> None:
    watchdog = Watchdog(7, Kernel().look)
    reported = []
    for _ in range(int(REPORTED_S) + 1):
        watchdog.tick(LIMIT_S)
        reported.append(watchdog.is_silent)
    watchdog.heard()
    reported.append(watchdog.is_silent)
    assert reported == [False] * int(REPORTED_S) + [True, False]


def test_a_process_that_spins_hangs() -> None:
    kernel = Kernel("R", 100.0)
    watchdog = Watchdog(7, kernel.look)
    verdicts(watchdog, TICKS)
    kernel.usage = Usage("R", 100.0 + LIMIT_S)
    assert watchdog.tick(LIMIT_S)


def test_a_process_that_gets_no_processor_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    kernel = Kernel("R", 100.0)
    watchdog = Watchdog(7, kernel.look)
    with caplog.at_level(logging.WARNING):
        assert verdicts(watchdog, 5 * TICKS) == [False] * 5 * TICKS
    assert caplog.text.count("had 0.0 s of the processor") == 1
    # It had its share in the end, and made no turn all the same.
    kernel.usage = Usage("R", 100.0 + LIMIT_S)
    assert watchdog.tick(LIMIT_S)


@pytest.mark.parametrize("state", ["D", "t"])
def test_a_process_that_waits_for_the_disk_or_a_debugger_is_left_alone(state: str) -> None:
    watchdog = Watchdog(7, Kernel(state).look)
    assert verdicts(watchdog, 5 * TICKS) == [False] * 5 * TICKS


def test_a_process_that_closes_its_files_may_take_longer() -> None:
    watchdog = Watchdog(7, Kernel().look)
    watchdog.allow(2 * LIMIT_S)
    assert verdicts(watchdog, 2 * TICKS + 1) == [False] * 2 * TICKS + [True]


def test_a_process_that_has_ended_does_not_hang() -> None:
    kernel = Kernel()
    watchdog = Watchdog(7, kernel.look)
    kernel.usage = None
    assert verdicts(watchdog, 2 * TICKS) == [False] * 2 * TICKS


@contextmanager
def running(program: str) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-S", "-c", program])  # noqa: S603
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def until(pid: int, state: str, cpu_s: float = 0.0) -> None:
    ends = time.monotonic() + 20
    while (usage := usage_of(pid)) is None or usage.state != state or usage.cpu_s < cpu_s:
        assert time.monotonic() < ends, usage
        time.sleep(0.01)


def test_the_kernel_tells_what_a_process_does() -> None:
    with running("while True: pass") as pid:
        until(pid, "R", cpu_s=0.1)
        os.kill(pid, signal.SIGSTOP)
        until(pid, "T", cpu_s=0.1)
    with running("import time; time.sleep(600)") as pid:
        until(pid, "S")
    assert usage_of(pid) is None
