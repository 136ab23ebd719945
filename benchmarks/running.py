"""A gateway and a load generator as processes of their own, and what they cost."""

import json
import os
import select
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

SOURCE = Path(__file__).with_name("load")
LOAD = Path("build/load")
WAIT_S = 60
_TICKS = os.sysconf("SC_CLK_TCK")
_START = """
import sys
import msgspec
from weft.gateway.serve import serve
from weft.gateway.config.settings import Settings
def ready(address): print(address, flush=True)
sys.exit(serve(msgspec.json.decode(sys.argv[1], type=Settings), None, ready))
"""

Figures = dict[str, Any]


class Failed(RuntimeError):
    """A gateway or a load generator that said why it could not go on."""


class Gateway:
    """A gateway process with a worker for each service, and the settings that are no defaults."""

    def __init__(self, *services: str, **settings: object) -> None:
        self._settings = {
            "listen": "127.0.0.1:0",
            "services": services or ("default",),
            "log": {"level": "warning"},
            **settings,
        }
        self.port = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(self._settings)],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            address = line_of(self._process)
        except Failed:
            self._process.kill()
            self._process.communicate()
            raise
        self.port = int(address.rpartition(":")[2])
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        _wait_for_end(self._process)

    @property
    def front(self) -> int:
        """The process id of the front."""
        return self._process.pid

    def status(self) -> Figures:
        """What the gateway says of itself."""
        return status_at(self.port)

    def worker(self, service: str = "default") -> int:
        """The process id of a service's worker."""
        return int(self.status()["services"][service]["pid"])

    def cut(self) -> int:
        """How many readers of the default service were cut because they were too slow."""
        return int(self.status()["services"]["default"]["status"]["ended"].get("SlowReader", 0))


class Load:
    """A load generator that is running; its figures are one line of JSON each."""

    def __init__(self, command: str, **options: object) -> None:
        build()
        self.process = subprocess.Popen(
            [LOAD, command, *(f"{name}={value}" for name, value in options.items())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def figures(self) -> Figures:
        """The next line; waits for it."""
        figures: Figures = json.loads(line_of(self.process))
        return figures

    def end(self) -> None:
        """Close its standard input and wait for it to end."""
        _wait_for_end(self.process)


def status_at(port: int) -> Figures:
    """What the gateway at a port of loopback says of itself."""
    url = f"http://127.0.0.1:{port}/status"
    with urllib.request.urlopen(url, timeout=10) as answer:
        figures: Figures = json.load(answer)
    return figures


def load(command: str, **options: object) -> Figures:
    """Run a load generator to its end."""
    running = Load(command, **options)
    try:
        return running.figures()
    finally:
        running.end()


def build() -> None:
    """Compile the load generator if it is older than any of its sources."""
    newest = max(path.stat().st_mtime for path in SOURCE.iterdir())
    if not LOAD.exists() or LOAD.stat().st_mtime < newest:
        LOAD.parent.mkdir(exist_ok=True)
        flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra"]
        subprocess.run(["gcc", *flags, "-o", LOAD, *sorted(SOURCE.glob("*.c"))], check=True)


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


def _wait_for_end(process: "subprocess.Popen[str]") -> None:
    try:
        process.communicate(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise


def line_of(process: "subprocess.Popen[str]") -> str:
    """The next line of its output; each is written at once, and nothing before it is asked for."""
    out: IO[str] | None = process.stdout
    if out is None:
        raise ValueError("a process whose output goes elsewhere")
    if not select.select([out], [], [], WAIT_S)[0]:
        raise Failed(f"nothing was said for {WAIT_S} s")
    line = out.readline()
    if not line:
        why = process.stderr.read().strip() if process.stderr is not None else ""
        raise Failed(why or f"{process.args!r} ended with status {process.wait(WAIT_S)}")
    return line.strip()
