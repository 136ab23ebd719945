"""The README followed literally: every command works, and shows what the page promises.

Only the ports and the home folder are others, and `make run` is what it runs: `weft serve`.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"^```(sh|py)\n(.*?)^```", README, re.M | re.S)
BOUND_S = 90.0
EVERY_S = 0.1
TEMPERATURES = "sensors.london.temp"
# Commands that go on until ^C, and something that each shows.
GO_ON = {
    "weft serve": "is ready on",
    "weft sub greetings.>": "greetings.world  hello",
    "weft pub greetings.world hello --count 1000 --rate 10": "",
    "weft top": "subjects by rate",
    "weft reply quotes.get --field price:double=3": "",
    f"weft pub {TEMPERATURES} --field value:double=21.5 --count 1000 --rate 10": "",
    "curl -N http://127.0.0.1:7411/weather/stream/sensors?subpaths=1": "data:",
    "weft serve --name london --listen 127.0.0.1:7411": "london is ready on",
    "weft serve --name paris --listen 127.0.0.1:7412 --join 127.0.0.1:7411": "is ready on",
    "weft serve --name tokyo --listen 127.0.0.1:7413 --join 127.0.0.1:7411": "is ready on",
    "weft sub sensors.> --gateway 127.0.0.1:7412": TEMPERATURES,
    "weft sub sensors.*.temp --gateway 127.0.0.1:7413": TEMPERATURES,
    f"weft pub {TEMPERATURES} 21.5 --count 1000 --rate 10": "",
    "weft routes --watch": TEMPERATURES,
    "weft serve --data ~/weft --journal": "is ready on",
    "weft sub sensors.> --since 5m": TEMPERATURES,
    "weft sub rates.seen": "",
}
# What those show that end by themselves; the others need only succeed.
SHOWS = {
    "weft sql SELECT subject, count(*) FROM weather GROUP BY 1 --path ~/weft": TEMPERATURES,
    "weft mesh": "tokyo",
    f"weft trace {TEMPERATURES}": "paris",
}
# tests/examples/test_demo.py runs this one: it goes on, and takes a Spark of its own.
RUN_ELSEWHERE = ("weft pipeline run rates",)


def commands() -> list[str]:
    """Every command of the README in its order, without comments; programs as they are."""
    found = []
    for kind, text in BLOCKS:
        lines = [text] if kind == "py" else text.splitlines()
        found += [line.partition("   #")[0].strip() for line in lines]
    return [each for each in found if each]


class Terminals:
    """Where the commands are run; all that still goes on is ended with it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = dict(zip(("7411", "7412", "7413"), free_ports(), strict=True))
        self._environment = {
            **os.environ,
            "HOME": str(folder),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "WEFT_GATEWAY": f"127.0.0.1:{self._ports['7411']}",
        }
        self._running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
        self._count = 0

    def run(self, command: str) -> None:
        """Run a command, to its end or until it shows what it should."""
        words = plain(command)
        if words.startswith("export "):
            name, value = words.removeprefix("export ").split("=")
            self._environment[name] = value
        elif words in GO_ON:
            is_gateway = words.startswith("weft serve")
            if is_gateway and "--join" not in words:
                # Its port is taken by the one before, which the page says to end.
                self.end_all()
            self._running[words] = self._start(command)
            if is_gateway:
                self._wait_for_shown(words)
        else:
            if "weft keys new --role admin" in words:
                # From then on the clients that still run would need a key.
                self._end([each for each in self._running if not each.startswith("weft serve")])
            self._until_done(words, command)

    def end_all(self) -> None:
        """End what still runs, as ^C would, once it has shown what it should."""
        self._end(list(self._running))

    def _end(self, ended: list[str]) -> None:
        for words in ended:
            self._wait_for_shown(words)
        # The last first: clients before the gateways that they are connected to.
        for words in reversed(ended):
            process, log = self._running[words]
            process.send_signal(signal.SIGINT)
            code = process.wait(BOUND_S)
            assert code in (0, 130, -signal.SIGINT), f"{words}\n{log.read_text()}"
            del self._running[words]

    def kill_all(self) -> None:
        """End what still runs, whatever it is doing."""
        for process, _ in self._running.values():
            process.kill()
            process.wait()

    def _wait_for_shown(self, words: str) -> None:
        process, log = self._running[words]
        wait_until(lambda: GO_ON[words] in log.read_text() or process.poll() not in (None, 0))
        assert GO_ON[words] in log.read_text(), f"{words}\n{log.read_text()}"

    def _until_done(self, words: str, command: str) -> None:
        """Run a command that ends; again if what it looks at is not yet there."""
        said: list[str] = []

        def is_done() -> bool:
            process, log = self._start(command)
            code = process.wait(BOUND_S)
            said.append(f"{command}: {code}\n{log.read_text()}")
            return code == 0 and SHOWS.get(words, "") in log.read_text()

        wait_until(is_done)
        assert said
        assert ": 0\n" in said[-1], said[-1]
        assert SHOWS.get(words, "") in said[-1], said[-1]

    def _start(self, command: str) -> tuple[subprocess.Popen[bytes], Path]:
        self._count += 1
        log = self._folder / f"{self._count}.log"
        line = command.replace(".venv/bin/", "")
        if line == "weft serve" or line.startswith("weft serve --data"):
            line += " --listen 127.0.0.1:7411"
        for port, mine in self._ports.items():
            line = line.replace(f"127.0.0.1:{port}", f"127.0.0.1:{mine}")
        arguments = [sys.executable, "-c", line] if "\n" in line else ["sh", "-c", shell(line)]
        with log.open("wb") as file:
            process = subprocess.Popen(  # noqa: S603  # our own page
                arguments,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        return process, log


def plain(command: str) -> str:
    """A command without quotes, and without the folder of its program; a program as it is."""
    if "\n" in command:
        return command
    return " ".join(shlex.split(command)).replace(".venv/bin/", "")


def shell(line: str) -> str:
    """A line for a shell that becomes the command, so that a signal reaches it."""
    return line if line.startswith("(") else f"exec {line}"


def wait_until(is_true: Callable[[], bool]) -> None:
    """Wait for a state, or for the bound, whose reason the caller tells."""
    until_s = time.monotonic() + BOUND_S
    while not is_true() and time.monotonic() < until_s:
        time.sleep(EVERY_S)


def free_ports() -> list[str]:
    """Three ports that nobody has; held until all are known, so that they differ."""
    with ExitStack() as held:
        taken = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        return [str(each.getsockname()[1]) for each in taken]


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    made = Terminals(tmp_path)
    yield made
    made.kill_all()


def test_every_command_works_as_it_is_printed(terminals: Terminals) -> None:
    terminals.run("weft serve")
    left_out = {". .venv/bin/activate"}
    for command in commands():
        is_elsewhere = command.startswith(RUN_ELSEWHERE) or command.startswith("make ")
        is_without = command.startswith("curl ") and shutil.which("curl") is None
        if not is_elsewhere and not is_without and command not in left_out:
            terminals.run(command)
    terminals.end_all()


def test_what_is_said_of_commands_is_of_commands_that_are_there() -> None:
    there = {plain(command) for command in commands()} | {"weft serve"}
    assert GO_ON.keys() | SHOWS.keys() <= there


def test_the_shell_that_reads_on_has_the_commands() -> None:
    """The page says how `weft` is found before it calls it by that name."""
    before, _, _ = README.partition("\n. .venv/bin/activate")
    assert not re.findall(r"^weft ", before, re.M)
