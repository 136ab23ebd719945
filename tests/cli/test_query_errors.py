import asyncio
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]

LOOKS = [["status"], ["top", "--once"]]
# Closing a socket with this sends a reset instead of an end.
RESET = struct.pack("ii", 1, 0)


@contextmanager
def stranger(answer: bytes) -> Iterator[str]:
    """The address of a program that says something to the first who comes, and hangs up."""

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)
            if not answer:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize("look", LOOKS)
async def test_a_port_that_wants_tls_says_how_to_reach_it(
    started: Start, run_here: Run, certificates: Path, look: list[str]
) -> None:
    keys = ("--tls-cert", certificates / "first.pem", "--tls-key", certificates / "first.key")
    async with started("serve", "--listen", "127.0.0.1:0", *map(str, keys)) as process:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        address = line.partition(" is ready on tls://")[2].partition(";")[0]
        plain = await asyncio.to_thread(run_here, *look, "--gateway", address)
        local = address.replace("127.0.0.1", "localhost")
        distrusted = await asyncio.to_thread(run_here, *look, "--gateway", f"tls://{local}")
    assert (plain.returncode, plain.stdout) == (1, "")
    assert plain.stderr == (f"weft: unreachable: this port speaks TLS only: use tls://{address}\n")
    assert (distrusted.returncode, distrusted.stdout) == (1, "")
    assert distrusted.stderr.startswith(
        f"weft: unreachable: the certificate of tls://{local} cannot be trusted: "
    )
    assert distrusted.stderr.endswith("; --tls-ca names the authority to trust\n")
    assert distrusted.stderr.count("\n") == 1


@pytest.mark.parametrize("look", LOOKS)
def test_a_port_without_tls_says_so(gateway: str, run_here: Run, look: list[str]) -> None:
    done = run_here(*look, "--gateway", f"tls://{gateway}")
    assert done.returncode == 1
    assert done.stderr == (f"weft: unreachable: this port does not speak TLS: use {gateway}\n")


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"", "{} closes the connection: not a Weft gateway, or one that is closing down"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "{} is not a Weft gateway"),
        (b"\x00\xff\x1b[2J\n", "{} is not a Weft gateway"),
    ],
)
def test_what_is_no_gateway_is_one_sentence(
    run_here: Run, look: list[str], answer: bytes, sentence: str
) -> None:
    with stranger(answer) as address:
        done = run_here(*look, "--gateway", address)
    assert done.returncode == 1
    assert done.stderr == f"weft: unreachable: {sentence.format(address)}\n"


def test_nobody_there_is_told_without_numbers_of_errors(run_here: Run) -> None:
    done = run_here("status", "--gateway", "127.0.0.1:1")
    assert done.stderr == (
        "weft: unreachable: no gateway answers at 127.0.0.1:1: Connection refused\n"
    )
