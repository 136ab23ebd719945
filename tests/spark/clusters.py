"""Spark clusters of this machine for tests, from what pip installs: standalone, and Spark Connect.

Every process listens on the loopback alone, on a port that the system picked and its log tells; it
is waited for by what it says, for a bounded time, and ended by its own process group.
"""

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark

from weft.spark.java import java_home

# Long enough for whatever works, on a machine that is busy with other things.
WAIT_S = 240.0
END_S = 20.0
FAST_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_ROOT = Path(__file__).parents[2]
_HOME = Path(pyspark.__file__).parent
_MASTER = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
_WORKER = re.compile(r"Successfully registered with master")
_CONNECT = re.compile(r"Spark Connect server started at: (127\.0\.0\.1:\d+)")
_ENDED = None


class Program:
    """A process whose lines are read as they come, so that it never waits for its reader."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._last: deque[str] = deque(maxlen=200)
        self._process = subprocess.Popen(  # noqa: S603  # ours
            command,
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def said(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Wait for a line, and fail with what it said instead if it never comes."""
        end = time.monotonic() + WAIT_S
        while True:
            try:
                line = self._lines.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                line = _ENDED
            if line is _ENDED:
                raise AssertionError(f"never said {pattern.pattern!r}:\n{''.join(self._last)}")
            found = pattern.search(line)
            if found:
                return found

    def tell(self, line: str) -> None:
        """Give it a line to read."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """End it and what it started; it may take its time to end its own."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._reading.join(END_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._last.append(line)
            self._lines.put(line)
        self._lines.put(_ENDED)


@contextlib.contextmanager
def running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Program]:
    """A program that ends with its block."""
    program = Program(command, environment)
    try:
        yield program
    finally:
        program.end()


@contextlib.contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """A master with workers of one core each; gives its address."""
    settings = folder / "master.conf"
    settings.write_text("spark.master.rest.enabled false\n")
    environment = _for_servers() | {
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": FAST_JAVA,
    }
    with contextlib.ExitStack() as stack:
        options = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = stack.enter_context(
            running(
                _spark_class("master.Master", *options, "--properties-file", str(settings)),
                environment,
            )
        )
        address = master.said(_MASTER)[1]
        limits = ("--cores", "1", "--memory", "768m")
        started = [
            stack.enter_context(
                running(
                    _spark_class(
                        "worker.Worker",
                        *(*options, *limits, "--work-dir", str(folder / f"worker-{number}")),
                        address,
                    ),
                    environment,
                )
            )
            for number in range(workers)
        ]
        for worker in started:
            worker.said(_WORKER)
        yield address


@contextlib.contextmanager
def connect_server() -> Iterator[str]:
    """A Spark Connect server on two threads of this machine; gives its address."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.extraJavaOptions": FAST_JAVA,
        "spark.driver.memory": "768m",
        "spark.python.authenticate.socketTimeout": "120s",
        # Another one than a session of Weft has, to see that the session's own counts.
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.ui.enabled": "false",
    }
    command = (
        *(str(_HOME / "bin" / "spark-submit"), "--master", "local[2]"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        "spark-internal",
    )
    with running(command, _for_servers()) as server:
        yield f"sc://{server.said(_CONNECT)[1]}"


class Driver:
    """A process of its own with a session of its own, which runs the job whenever it is told."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def run(self, journal: Path, results: Path) -> dict[str, Any]:
        """What the job says."""
        self._program.tell(json.dumps({"journal": str(journal), "results": str(results)}))
        found: dict[str, Any] = json.loads(self._program.said(re.compile(r"^ANSWER (.*)$"))[1])
        return found


@contextlib.contextmanager
def driver(master: str, settings: Mapping[str, str]) -> Iterator[Driver]:
    """A driver on some master, which has only what `weft.spark.session` gives it."""
    command = (sys.executable, "-m", "tests.spark.job", master, json.dumps(dict(settings)))
    with running(command, _plain()) as program:
        yield Driver(program)


def _spark_class(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments)


def _plain() -> dict[str, str]:
    """The environment without what other sessions of Spark left in it."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_"))
    }


def _for_servers() -> dict[str, str]:
    return _plain() | {
        "JAVA_HOME": java_home(),
        "SPARK_LAUNCHER_OPTS": FAST_JAVA,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
    }
