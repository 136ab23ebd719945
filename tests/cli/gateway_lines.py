"""Gateways in processes of their own that are linked in a line."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.cli.conftest import COMMAND, READY

from weft.cli.options.target import CommandTarget
from weft.cli.query import fetch_status

LIMIT_S = 20.0


class Served(NamedTuple):
    """A gateway: where it listens, and its process."""

    address: str
    process: subprocess.Popen[str]

    def die(self) -> None:
        """End it and its worker at once, so that neither can say a word."""
        target = CommandTarget(self.address, "default", "", None, is_json=True)
        worker = fetch_status(target)["services"]["default"]["pid"]
        # Otherwise it would have another worker at once.
        self.process.send_signal(signal.SIGSTOP)
        os.kill(worker, signal.SIGKILL)
        self.process.kill()
        self.process.wait(30)


@contextmanager
def served(*arguments: str) -> Iterator[Served]:
    """A gateway that `weft serve` runs with these arguments, until it is ended or was."""
    process = subprocess.Popen(  # noqa: S603  # our own command
        [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--log-level", "error", *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as said:
        try:
            found = READY.search(said.readline())
            assert found, "the gateway ended before it listened"
            yield Served(found[1], process)
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def line(folder: Path) -> Iterator[dict[str, Served]]:
    """London, Paris and Rome: the first and the last cannot dial each other."""
    # A service is in the mesh where it runs, whoever uses it.
    running = folder / "paris.toml"
    running.write_text('services = ["default"]\n')
    with ExitStack() as stack:
        paris = stack.enter_context(served("--name", "paris", "--config", str(running)))
        made = {"paris": paris}
        # Nobody listens on these ports.
        for port, name in ((1, "london"), (2, "rome")):
            config = folder / f"{name}.toml"
            config.write_text(
                f'services = ["default"]\n[mesh]\naddress = "127.0.0.1:{port}"\nmax_links = 1\n'
            )
            made[name] = stack.enter_context(
                served("--name", name, "--join", paris.address, "--config", str(config))
            )
        yield made


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, within bounds."""
    end_s = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < end_s, "it did not come to that"
        time.sleep(0.02)
