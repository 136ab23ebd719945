"""A gateway as people run it: `weft serve` in a process, with a worker process for each service."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

WAIT_S = 30
SERVE = (sys.executable, "-m", "weft.cli", "serve")

_READY = re.compile(r" is ready on (\S+);")


class RunningGateway:
    """A gateway that was started; `address` is where it listens, its log is in `log`."""

    def __init__(
        self, folder: Path, settings: str, listen: str, options: Sequence[str] = ()
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "weft.toml"
        file.write_text(settings)
        self.log = folder / "log"
        self._is_ending = False
        with self.log.open("w") as log:
            self._process = subprocess.Popen(  # noqa: S603  # our own command
                [*SERVE, "--config", file, "--listen", listen, *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        # Kept open: the gateway has more to say.
        self._said = self._process.stdout
        found = _READY.search(self._said.readline())
        assert found, f"the gateway ended before it listened:\n{self.log.read_text()}"
        self.address = found[1]

    @property
    def front(self) -> int:
        """The process id of the front."""
        return self._process.pid

    def status(self) -> dict[str, Any]:
        """What the gateway says of itself."""
        with urllib.request.urlopen(f"http://{self.address}/status", timeout=WAIT_S) as answer:
            status: dict[str, Any] = json.load(answer)
        return status

    def worker(self, service: str) -> int:
        """The process id of a service's worker."""
        return int(self.status()["services"][service]["pid"])

    def kill_worker(self, service: str) -> None:
        kill(self.worker(service))

    @contextmanager
    def stopped_worker(self, service: str) -> Iterator[None]:
        """While this lasts, the service stands still."""
        with stopped(self.worker(service)):
            yield

    def terminate(self) -> None:
        """Ask it to drain; only once, because the second time would cut the drain short."""
        if not self._is_ending:
            self._is_ending = True
            self._process.terminate()

    def wait(self) -> int:
        """Wait until it has ended; its exit status. It waits for clients on the caller's loop."""
        status = self._process.wait(WAIT_S)
        self._said.close()
        return status

    def kill(self) -> None:
        self._process.kill()
        self.wait()


@contextmanager
def running(
    folder: Path, settings: str = "", listen: str = "127.0.0.1:0", options: Sequence[str] = ()
) -> Iterator[RunningGateway]:
    """A gateway that drains at the end, and whose log has nothing that nobody expected."""
    gateway = RunningGateway(folder, settings, listen, options)
    try:
        yield gateway
        gateway.terminate()
        assert gateway.wait() == 0
        assert "Traceback" not in gateway.log.read_text()
    except BaseException:
        gateway.kill()
        raise


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """While this lasts, a process stands still; it may be killed meanwhile."""
    # By descriptor: the number of one that was killed may be another's by then.
    process = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(process, signal.SIGSTOP)
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGCONT)
    finally:
        os.close(process)


def kill(pid: int) -> None:
    """End a process that a gateway started, without a word to it."""
    os.kill(pid, signal.SIGKILL)
