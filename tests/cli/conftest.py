"""A real gateway in a process of its own, and the command line run here or in further processes."""

import asyncio
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from weft.cli.app import run

COMMAND = (sys.executable, "-m", "weft.cli")
READY = re.compile(r" is ready on (127\.0\.0\.1:\d+);")


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Let processes be interrupted: a shell that runs us in the background has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def gateway() -> Iterator[str]:
    """The address of a gateway that `weft serve` runs; ended by SIGTERM, it drains and says 0."""
    process = subprocess.Popen(  # noqa: S603  # our own command
        [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--name", "tested", "--log-level", "error"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as said:
        found = READY.search(said.readline())
        assert found, "the gateway ended before it listened"
        yield found[1]
        process.terminate()
        assert process.wait(30) == 0


@pytest.fixture
def run_here(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Carry out a command line within this process: `run_here("pub", "a.b", "text")`."""

    def run_it(*arguments: str, given: bytes | None = None) -> subprocess.CompletedProcess[str]:
        if "gateway" in request.fixturenames:
            monkeypatch.setenv("WEFT_GATEWAY", request.getfixturevalue("gateway"))
        # A command of Spark sets it for the processes that it starts: it must not outlive the test.
        monkeypatch.setenv("PYTHONSAFEPATH", "")
        monkeypatch.delenv("PYTHONSAFEPATH")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given or b"")))
        capsys.readouterr()
        code = run(arguments)
        shown = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, shown.out, shown.err)

    return run_it


@pytest.fixture
def started(
    request: pytest.FixtureRequest,
) -> Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]:
    """A command line in a process of its own: `async with started("sub", ">") as process`."""

    @asynccontextmanager
    async def start(
        *arguments: str, stdout: int = asyncio.subprocess.PIPE
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        environment = {**os.environ, "COLUMNS": "200", "LINES": "50", "TERM": "xterm-256color"}
        if "gateway" in request.fixturenames:
            environment["WEFT_GATEWAY"] = request.getfixturevalue("gateway")
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=stdout,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    return start
