"""Passes those who ask for a journal on to the process that lends it."""

import asyncio
import socket
import sys
from pathlib import Path

import msgspec

from weft.errors import Overloaded
from weft.journal.places import FOLDER


class Request(msgspec.Struct, frozen=True):
    """What is asked for, as far as it matters here."""

    target: str
    range: str
    is_head: bool


class Lending:
    """The library of one gateway; it is started when somebody comes, and again if it has ended."""

    def __init__(self, data: Path, node: str, patterns: tuple[bytes, ...] = ()) -> None:
        self.patterns = patterns
        self._arguments = (str(data / FOLDER), node)
        self._near: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()

    async def lend(self, sock: socket.socket, request: Request) -> None:
        """Have a request answered; the connection is still the caller's to close.

        Raises:
            Overloaded: too many are waiting already.
        """
        for _ in range(2):
            near = await self._library()
            try:
                socket.send_fds(near, [msgspec.json.encode(request)], [sock.fileno()])
            except BlockingIOError:
                raise Overloaded("too many wait for the library") from None
            except ConnectionError:
                # It has just ended, and nobody was told yet.
                self._process = None
            else:
                return
        raise Overloaded("the library has ended; ask again")

    async def close(self) -> None:
        """Lend nothing more; what is being read is read to its end, for a moment."""
        if self._near is not None:
            self._near.close()
            self._near = None
        if self._process is not None and self._process.returncode is None:
            try:
                async with asyncio.timeout(1.0):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()

    async def _library(self) -> socket.socket:
        """The socket of the library, which is started if it does not run."""
        async with self._starting:
            is_running = self._process is not None and self._process.returncode is None
            if self._near is None or not is_running:
                self._near = await self._started()
        return self._near

    async def _started(self) -> socket.socket:
        if self._near is not None:
            self._near.close()
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        near.setblocking(False)
        with far:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "weft.gateway.library", str(far.fileno())),
                *self._arguments,
                pass_fds=(far.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        return near
