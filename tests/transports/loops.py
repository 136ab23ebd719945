"""Clients on real sockets, and tests that hold on either event loop."""

import asyncio
import inspect
import os
import socket
import struct
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvloop

from weft.wire.frames import Decoder, Frame, Kind, encode, parse
from weft.wire.message.message import Message

LIMIT_S = 30
LOOPS = {"asyncio": asyncio.run, "uvloop": uvloop.run}
CONNECT = encode(Kind.CONNECT, b"weather")


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a coroutine test on asyncio's own loop and on uvloop; nothing may go wrong in either."""

    def run(loop: str, **arguments: Any) -> None:
        LOOPS[loop](_guarded(partial(test, **arguments)))

    parameters = inspect.signature(test).parameters.values()
    first = inspect.Parameter("loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__name__ = test.__name__
    run.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]  # pytest looks there
    both: Callable[..., None] = pytest.mark.parametrize("loop", list(LOOPS))(run)
    return both


async def _guarded(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    caught: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: caught.append(context))
    open_before = open_descriptors()
    async with asyncio.timeout(LIMIT_S):
        await test()
        await until(lambda: open_descriptors() <= open_before)
    assert caught == []


def open_descriptors() -> int:
    """How many files and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for a state, and let everything else go on meanwhile."""
    while not is_so():
        await asyncio.sleep(0.001)


class Client:
    """The other end of a connection."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.decoder = Decoder(64 << 20)

    async def say(self, *frames: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, b"".join(frames))

    async def hear(self, count: int = 1) -> list[Frame]:
        """The next so many frames; fewer if the connection ends before."""
        frames: list[Frame] = []
        while len(frames) < count:
            frame = self.decoder.next_frame()
            if frame is not None:
                frames.append(parse(frame))
                continue
            data = await asyncio.get_running_loop().sock_recv(self.sock, 1 << 16)
            if not data:
                break
            self.decoder.feed(data)
        return frames

    async def hear_all(self) -> list[Frame]:
        """Everything until the connection ends."""
        return await self.hear(1 << 60)

    def reset(self) -> None:
        """Break the connection off, so that the other end gets an error."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        self.sock.close()


def unix_pair() -> tuple[Client, socket.socket]:
    """A client, and the end that a door takes over."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    return Client(ours), theirs


def tcp_pair() -> tuple[Client, socket.socket]:
    """The same over loopback, where a connection can be reset."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    theirs.setblocking(False)
    return Client(ours), theirs


def small_buffers(client: Client, theirs: socket.socket) -> None:
    """Let the kernel hold as little as possible between two ends."""
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)


def error_name(frame: Frame) -> str:
    return Message.from_body(frame.body).get_string("name")


def is_open(fd: int) -> bool:
    """Say if a descriptor is in use."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
