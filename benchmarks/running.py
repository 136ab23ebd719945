"""A gateway and a load generator as processes of their own, and what they cost."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

SOURCE = Path(__file__).with_name("load.c")
LOAD = Path("build/load")
WAIT_S = 60
_TICKS = os.sysconf("SC_CLK_TCK")
_START = """
import sys
from weft.gateway.serve import serve
from weft.gateway.settings import Log, Settings
def ready(address): print(address, flush=True)
services = tuple(sys.argv[1].split(","))
settings = Settings(listen="127.0.0.1:0", services=services, log=Log(level="warning"))
sys.exit(serve(settings, None, ready))
"""

Figures = dict[str, Any]


class Gateway:
    """A gateway process with a worker for each service."""

    def __init__(self, *services: str) -> None:
        self._services = services or ("default",)
        self.port = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, ",".join(self._services)],
            stdout=subprocess.PIPE,
            text=True,
        )
        address = _line(self._process)
        self.port = int(address.rpartition(":")[2])
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=WAIT_S)

    @property
    def front(self) -> int:
        """The process id of the front."""
        return self._process.pid

    def status(self) -> Figures:
        """What the gateway says of itself."""
        url = f"http://127.0.0.1:{self.port}/status"
        with urllib.request.urlopen(url, timeout=10) as answer:
            figures: Figures = json.load(answer)
        return figures

    def worker(self, service: str = "default") -> int:
        """The process id of a service's worker."""
        return int(self.status()["services"][service]["pid"])

    def cut(self) -> int:
        """How many readers of the default service were cut because they were too slow."""
        return int(self.status()["services"]["default"]["status"]["ended"].get("SlowReader", 0))


class Load:
    """A load generator that is running; its figures are one line of JSON each."""

    def __init__(self, *arguments: object) -> None:
        build()
        self.process = subprocess.Popen(
            [LOAD, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def figures(self) -> Figures:
        """The next line; waits for it."""
        figures: Figures = json.loads(_line(self.process))
        return figures

    def end(self) -> None:
        """Close its standard input and wait for it to end."""
        self.process.communicate(timeout=WAIT_S)


def load(*arguments: object) -> Figures:
    """Run a load generator to its end."""
    running = Load(*arguments)
    figures = running.figures()
    running.end()
    return figures


def build() -> None:
    """Compile the load generator if it is older than its source."""
    if not LOAD.exists() or LOAD.stat().st_mtime < SOURCE.stat().st_mtime:
        LOAD.parent.mkdir(exist_ok=True)
        subprocess.run(["gcc", "-O2", "-o", LOAD, SOURCE], check=True)


def cpu_s(pid: int) -> float:
    """The processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def rss_bytes(pid: int) -> int:
    """The memory a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def steady_rss_bytes(pid: int) -> int:
    """The memory a process holds once it has stopped growing."""
    before = 0
    while (now := rss_bytes(pid)) != before:
        before = now
        time.sleep(0.5)
    return now


def _line(process: "subprocess.Popen[str]") -> str:
    out: IO[str] | None = process.stdout
    line = out.readline() if out is not None else ""
    if not line:
        raise RuntimeError(f"{process.args!r} ended with status {process.wait(WAIT_S)}")
    return line.strip()
