"""A gateway that is killed and started again, with the same address and the same data."""

import os
import random
import select
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.attacks.gateway_process import WAIT_S, GatewayProcess, eventually
from tools.crashes.publisher import SUBJECT

from weft.journal.segment.file_names import FOLDER, JournalFolder

SERVICE = "default"
NODE = "london"
# Small, so that segments end often.
SEGMENT_BYTES = 200_000
# Below those that the system gives away: a client that dials one of these in vain could get it.
_PORTS = range(20_000, 32_000)


class Victim:
    """`weft serve` with a journal; `data` may be another disk than `folder`, where its log is."""

    def __init__(self, folder: Path, data: Path, settings: dict[str, object] | None = None) -> None:
        self.place = JournalFolder(data / FOLDER, SERVICE, NODE)
        self._folder = folder
        self._settings: dict[str, object] = {
            "name": NODE,
            "listen": f"127.0.0.1:{free_port()}",
            "services": [SERVICE],
            "data": str(data),
            "journal.patterns": [SUBJECT],
            "journal.segment_bytes": SEGMENT_BYTES,
        } | (settings or {})
        self._stack = ExitStack()
        self._process: GatewayProcess | None = None
        # For a moment it is still there.
        self._killed = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def address(self) -> str:
        """Where its clients find it, whichever process it is."""
        return f"tcp://{self._settings['listen']}"

    def start(self) -> None:
        """Start it, with the data that there is."""
        self._process = self._stack.enter_context(GatewayProcess(self._folder, self._settings))

    def kill_worker(self) -> None:
        """Kill the worker, the next one if there is none, whether it is up or not."""
        front = self._running().process.pid
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [pid for pid in children(front) if pid != self._killed]
            return bool(found)

        eventually(is_there, "no worker is started")
        (self._killed,) = found
        os.kill(self._killed, signal.SIGKILL)

    def kill(self) -> None:
        """Kill the front and the worker, and wait until nothing of them is left."""
        front = self._running().process.pid
        # Stopped, it starts no other worker.
        os.kill(front, signal.SIGSTOP)
        with ExitStack() as stack:
            for pid in (*children(front), front):
                stack.callback(wait_for_end, os.pidfd_open(pid))
                os.kill(pid, signal.SIGKILL)
        self._running().process.wait()
        self.end()

    def end(self) -> None:
        """Drain it, unless it was killed, and look at its log."""
        self._stack.close()

    def _running(self) -> GatewayProcess:
        if self._process is None:
            raise RuntimeError("the gateway was not started")
        return self._process


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in found.split()]


def wait_for_end(pidfd: int) -> None:
    """Wait until a process has ended, its last thread included, which may be with the disk."""
    try:
        select.select([pidfd], [], [], WAIT_S)
    finally:
        os.close(pidfd)


def free_port() -> int:
    """A port that nobody has, and that the system gives to nobody."""
    for port in random.SystemRandom().sample(_PORTS, 100):
        with socket.socket() as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no port of {_PORTS} is free")
