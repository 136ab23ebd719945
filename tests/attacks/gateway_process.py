"""A gateway as an operator runs it: `weft serve`, its processes, its numbers and its log."""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# Long enough for whatever works, on a machine that is busy with other things.
WAIT_S = 25
_READY = re.compile(r" is ready on (?:tls://)?127\.0\.0\.1:(\d+);")
_POLL_S = 0.01
_SERVE = ("-P", "-m", "weft.cli", "serve", "--config")


def eventually(is_true: Callable[[], object], about: Callable[[], object] | str) -> None:
    """Wait until something is true, and fail with what it is `about` if it never is."""
    ends = time.monotonic() + WAIT_S
    while not is_true():
        if time.monotonic() > ends:
            raise AssertionError(about if isinstance(about, str) else about())
        time.sleep(_POLL_S)


class GatewayProcess:
    """`weft serve` with the settings of a test, by their dotted keys."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, object] | None = None,
        descriptors_max: int | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._cwd = cwd
        self._file = folder / "weft.toml"
        self.log_file = folder / "log"
        # Before it is Python: a gateway looks at its limits first of all.
        limit = f'ulimit -n {descriptors_max} && exec "$@"'
        self._limiting = () if descriptors_max is None else ("/bin/sh", "-c", limit, "sh")
        self.port = 0
        self.tls: ssl.SSLContext | None = None
        if settings is not None and "tls.cert" in settings:
            self.tls = ssl.create_default_context(cafile=str(settings["tls.cert"]))
            self.tls.check_hostname = False
        self.write_settings({"services": ["default"], "drain_s": 5.0} | dict(settings or {}))

    def __enter__(self) -> Self:
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603  # our own command
                (*self._limiting, sys.executable, *_SERVE, str(self._file)),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._cwd,
            )
        assert self.process.stdout is not None
        self._said = self.process.stdout
        found = _READY.search(self._said.readline())
        assert found, self.log
        self.port = int(found[1])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.end()
        finally:
            self.process.kill()
            self.process.wait(WAIT_S)
            self._said.close()
        assert "Traceback" not in self.log, self.log

    @property
    def address(self) -> str:
        return f"{'tcp' if self.tls is None else 'tls'}://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def end(self) -> None:
        """Drain it, unless it has ended already."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(WAIT_S) == 0, self.log

    def write_settings(self, settings: Mapping[str, object]) -> None:
        """Write the file that is read at the start and on SIGHUP."""
        # What JSON writes of texts, numbers and lists is TOML as well.
        given = {"listen": "127.0.0.1:0", "name": "besieged"} | dict(settings)
        lines = [f"{key} = {json.dumps(value)}" for key, value in given.items()]
        self._file.write_text("\n".join(lines))

    def get(self, path: str) -> bytes:
        """A page of the gateway."""
        url = f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}{path}"
        # Ours, and no other scheme.
        with urllib.request.urlopen(url, timeout=WAIT_S, context=self.tls) as answer:  # noqa: S310
            page: bytes = answer.read()
        return page

    def status(self) -> dict[str, Any]:
        """What /status says."""
        status: dict[str, Any] = json.loads(self.get("/status"))
        return status

    def service(self, name: str = "default") -> dict[str, Any]:
        """What /status says about a service whose worker answers."""
        reports: list[dict[str, Any]] = []

        def has_answered() -> bool:
            reports.append(self.status()["services"][name])
            return reports[-1]["status"] is not None

        eventually(has_answered, lambda: f"{name} says nothing: {reports[-1]}")
        return reports[-1]

    def worker(self, service: str = "default") -> int:
        """The process id of a service's worker."""
        return int(self.service(service)["pid"])

    def connections(self, service: str = "default") -> int:
        """How many connections a service has."""
        return int(self.service(service)["status"]["connections"])

    def counts(self) -> "Counter[str]":
        """Every refusal and every end so far: "front TooSlow", "refused Reserved", "ended left"."""
        status = self.service()["status"]
        groups = {"front": self.status()["front"]["refused"]}
        groups |= {"refused": status["refused"], "ended": status["ended"]}
        counts = {f"{name} {why}": n for name, group in groups.items() for why, n in group.items()}
        return Counter(counts)


def rss_bytes(pid: int) -> int:
    """The memory that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid: int) -> int:
    """How many descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def is_running(pid: int) -> bool:
    """Say if there is such a process, and it has not ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
