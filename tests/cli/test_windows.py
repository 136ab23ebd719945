"""What commands show in a window of 80 columns and 24 lines: readable, not cut."""

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rich.cells import cell_len

import weft

COLUMNS, LINES = 80, 24
SERVICE = "window-weather"
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@contextmanager
def window() -> Iterator[tuple[int, int]]:
    """A terminal of that size; the end that is read, and the one that a command writes to."""
    master, terminal = pty.openpty()
    size = struct.pack("HHHH", LINES, COLUMNS, 0, 0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
    try:
        yield master, terminal
    finally:
        os.close(master)
        with contextlib.suppress(OSError):
            os.close(terminal)


async def shown(gateway: str, *arguments: str) -> list[str]:
    """The lines that a command leaves in the window."""
    sized = ("COLUMNS", "LINES")
    environment = {name: value for name, value in os.environ.items() if name not in sized}
    environment |= {"TERM": "xterm-256color", "WEFT_GATEWAY": gateway, "WEFT_SERVICE": SERVICE}
    with window() as (master, terminal):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "weft.cli", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=terminal,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
        os.close(terminal)
        text = b""
        # Reading fails where the last process has closed the terminal.
        with contextlib.suppress(OSError):
            while data := await asyncio.to_thread(os.read, master, 65_536):
                text += data
        _, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    return _CONTROLS.sub("", text.decode()).splitlines()


@pytest.mark.parametrize(
    ("arguments", "whole"),
    [
        (("status",), [SERVICE, "desk.of.many.readers", "ready"]),
        (("top", "--once"), ["sensors.london.temperature", "desk.of.many.readers"]),
        (("routes",), ["sensors.london.temperature", "station.north.17", "relayed"]),
        (("mesh",), ["tested"]),
        (("mesh", "--listeners", "sensors.london.temperature"), ["desk.of.many.readers"]),
    ],
)
async def test_a_command_fits(gateway: str, arguments: tuple[str, ...], whole: list[str]) -> None:
    async with (
        weft.connect(gateway, service=SERVICE, name="desk.of.many.readers") as desk,
        weft.connect(gateway, service=SERVICE, name="station.north.17") as station,
    ):
        readings = desk.subscribe("sensors.>")
        await readings.ready(30.0)
        for _ in range(100):
            await station.publish("sensors.london.temperature", {"value": 21.5}, acknowledge=True)
            await readings.next(30.0)
        lines = await shown(gateway, *arguments)
    assert len(lines) <= LINES
    assert max(map(cell_len, lines)) <= COLUMNS
    text = "\n".join(lines)
    assert "…" not in text
    for each in whole:
        assert each in text
