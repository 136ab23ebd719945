import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from weft.gateway.config.settings import Tls
from weft.wire.frames import Kind, encode

PROGRAM = """
import sys
from pathlib import Path
from weft.gateway.config.load import load
from weft.gateway.serve import serve

def read():
    return load(Path(sys.argv[1]))

sys.exit(serve(read(), read, lambda address: print(address, flush=True)))
"""
QUIET = 'listen = "127.0.0.1:0"\nservices = ["weather"]\n[log]\nlevel = "info"\nformat = "json"\n'


class Served:
    """A gateway in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self.process = process
        host, _, port = address.rpartition(":")
        self.address = (host, int(port))

    async def join(self, service: str = "weather") -> tuple[asyncio.StreamReader, "Writer"]:
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(encode(Kind.CONNECT, service.encode()))
        head = await reader.readexactly(5)
        await reader.readexactly(int.from_bytes(head[:4], "little") - 5)
        assert head[4] == Kind.WELCOME
        return reader, writer

    async def page(self, path: str) -> str:
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer.partition(b"\r\n\r\n")[2].decode()

    async def logged(self, start: str) -> dict[str, str]:
        """The next line of the log that begins so."""
        assert self.process.stderr is not None
        while raw := await self.process.stderr.readline():
            line: dict[str, str] = json.loads(raw)
            if line["text"].startswith(start):
                return line
        raise AssertionError(f"nothing was logged that starts with {start!r}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


Writer = asyncio.StreamWriter


@asynccontextmanager
async def serving(folder: Path, settings: str = QUIET) -> AsyncIterator[Served]:
    path = folder / "weft.toml"
    path.write_text(settings)
    process = await started(path)
    assert process.stdout is not None
    try:
        address = (await process.stdout.readline()).decode().strip()
        yield Served(process, address)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def started(path: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, str(path)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def gone(pid: int) -> None:
    """Wait until a process of the gateway has ended; it is not our child."""
    while Path(f"/proc/{pid}").exists():
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_it(tmp_path: Path, number: signal.Signals) -> None:
    async with serving(tmp_path) as served:
        reader, writer = await served.join()
        worker = json.loads(await served.page("/status"))["services"]["weather"]["pid"]
        served.signal(number)
        assert (await reader.readexactly(5))[4] == Kind.GOODBYE
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*served.address)
        writer.close()
        await writer.wait_closed()
        assert await served.process.wait() == 0
        await gone(worker)


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        reader, writer = await served.join()
        worker = json.loads(await served.page("/status"))["services"]["weather"]["pid"]
        served.signal(signal.SIGTERM)
        assert (await reader.readexactly(5))[4] == Kind.GOODBYE
        served.signal(signal.SIGTERM)
        # Not the ten seconds that a drain may take, though nobody left.
        await reader.read()
        assert await served.process.wait() == 1
        await gone(worker)
        writer.close()
        await writer.wait_closed()


async def test_a_killed_front_leaves_no_worker_behind(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        reader, writer = await served.join()
        worker = json.loads(await served.page("/status"))["services"]["weather"]["pid"]
        served.signal(signal.SIGKILL)
        assert (await reader.readexactly(5))[4] == Kind.GOODBYE
        writer.close()
        await writer.wait_closed()
        await gone(worker)


async def test_sighup_reads_the_settings_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        changed = QUIET.replace('["weather"]', '["weather", "orders"]')
        (tmp_path / "weft.toml").write_text('name = "other"\n' + changed)
        served.signal(signal.SIGHUP)
        assert (await served.logged("SIGHUP: the settings were read again"))["level"] == "info"
        assert (await served.logged("SIGHUP: waits"))["text"].endswith("restart: name")
        _, writer = await served.join("orders")
        writer.close()
        await writer.wait_closed()


async def test_a_mistake_in_the_settings_changes_nothing_and_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        (tmp_path / "weft.toml").write_text("drain_ms = 3\n")
        served.signal(signal.SIGHUP)
        line = await served.logged("SIGHUP: settings unchanged")
        assert line["level"] == "error"
        assert "did you mean 'drain_s'?" in line["text"]
        _, writer = await served.join()
        writer.close()
        await writer.wait_closed()


async def test_a_worker_s_end_is_in_the_log(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        worker = json.loads(await served.page("/status"))["services"]["weather"]["pid"]
        os.kill(worker, signal.SIGKILL)
        line = await served.logged(f"worker {worker} was ended by signal 9")
        assert (line["service"], line["level"]) == ("weather", "warning")
        assert (await served.logged("worker"))["text"].endswith("is up")


async def test_the_wrong_certificate_is_a_wrong_setting(tmp_path: Path, tls: Tls) -> None:
    path = tmp_path / "weft.toml"
    path.write_text(f'listen = "127.0.0.1:0"\n[tls]\ncert = "{tls.key}"\nkey = "{tls.key}"\n')
    process = await started(path)
    _, said = await process.communicate()
    assert process.returncode == 2
    assert said.decode().splitlines()[-1].startswith("weft: tls.cert")


async def test_an_address_in_use_is_a_failure_that_names_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        address = "{}:{}".format(*served.address)
        path = tmp_path / "second.toml"
        path.write_text(f'listen = "{address}"\n')
        process = await started(path)
        _, said = await process.communicate()
        assert process.returncode == 1
        expected = f"weft: cannot listen on {address}: Address already in use"
        assert said.decode().splitlines()[-1] == expected
