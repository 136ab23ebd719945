"""A gateway with a journal that is killed, with all its processes, and started again."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.attacks.gateway_process import GatewayProcess
from tools.crashes.victim import children, free_port, wait_for_end

from weft.journal.segment.file_names import FOLDER, JournalFolder

SERVICE = "default"
# Small, so that segments end and are sealed often.
SEGMENT_BYTES = 2_000_000
# How long to wait for the moment to kill it.
_MOMENT_S = 60.0
_LOOK_S = 0.0005


class Gateway:
    """`weft serve`, which keeps everything."""

    def __init__(self, folder: Path, node: str) -> None:
        folder.mkdir()
        self.node = node
        self.data = folder / "data"
        self.place = JournalFolder(self.data / FOLDER, SERVICE, node)
        self._folder = folder
        self._settings: dict[str, object] = {
            "name": node,
            "listen": f"127.0.0.1:{free_port()}",
            "services": [SERVICE],
            "data": str(self.data),
            "journal.patterns": [">"],
            "journal.segment_bytes": SEGMENT_BYTES,
        }
        self._moments = {
            "writing": self._is_writing,
            "sealing": self._is_sealing,
            "releasing": self._is_releasing,
        }
        self._stack = ExitStack()
        self.start()

    @property
    def address(self) -> str:
        """Where it is, whichever process it is."""
        return str(self._settings["listen"])

    def start(self) -> None:
        """Start it, with the data that there is."""
        self._process = self._stack.enter_context(GatewayProcess(self._folder, self._settings))

    def end(self) -> None:
        """Drain it."""
        self._stack.close()

    def kill_when(self, moment: str) -> bool:
        """Kill it in the midst of something, and start it again; False if that never came."""
        is_now = self._moments[moment]
        ends = time.monotonic() + _MOMENT_S
        while time.monotonic() < ends:
            if is_now() and self._killed_while(is_now):
                return True
            time.sleep(_LOOK_S)
        return False

    def _killed_while(self, is_now: Callable[[], bool]) -> bool:
        self._kill()
        was_right = is_now()
        self.start()
        return was_right

    def _kill(self) -> None:
        """Kill everything that belongs to it, and wait until nothing is left."""
        front = self._process.process.pid
        os.kill(front, signal.SIGSTOP)
        with ExitStack() as stack:
            for pid in (*_all_below(front), front):
                stack.callback(wait_for_end, os.pidfd_open(pid))
                os.kill(pid, signal.SIGKILL)
        self._process.process.wait()
        self._stack.close()

    def _is_writing(self) -> bool:
        return any(self.place.folder.glob("_open-*"))

    def _is_sealing(self) -> bool:
        return any(self.place.folder.glob("_aside-*"))

    def _is_releasing(self) -> bool:
        try:
            return any(
                b'"order":{' in path.read_bytes()
                for path in self.data.glob("staged/*/*/*/state.json")
            )
        except FileNotFoundError:
            return False


def _all_below(pid: int) -> list[int]:
    found = children(pid)
    return [below for each in found for below in _all_below(each)] + found
