"""Passes HTTP requests for a journal to its file server process."""

import asyncio
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from weft.errors import Overloaded, TooMany, WeftError
from weft.journal.segment.file_names import FOLDER

_NEWS_MAX_BYTES = 4096


class FileRequest(msgspec.Struct, frozen=True):
    """Parts of an HTTP request that the file server needs."""

    target: str
    range: str
    is_head: bool
    # The requester: its key, empty without keys; and its address.
    holder: str = ""
    peer: str = ""


class FileRequestRefused(msgspec.Struct, frozen=True):
    """File server to gateway: a request was refused, and why."""

    name: str
    text: str
    peer: str


class Lending:
    """File server process of one gateway, started on the first request and after it has ended."""

    def __init__(self, data: Path, node: str, patterns: tuple[bytes, ...] = ()) -> None:
        self.patterns = patterns
        # Called with refusals of the file server: the error, and the reader's address.
        self.on_refused: Callable[[WeftError, str], None] | None = None
        self._arguments = (str(data / FOLDER), node)
        self._near: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()

    async def lend(self, sock: socket.socket, request: FileRequest) -> None:
        """Pass on a request with its connection; the caller closes its own descriptor.

        Raises:
            Overloaded: Too many requests are waiting.
        """
        for _ in range(2):
            near = await self._library()
            try:
                socket.send_fds(near, [msgspec.json.encode(request)], [sock.fileno()])
            except BlockingIOError:
                raise Overloaded("too many requests wait for the journal's file server") from None
            except ConnectionError:
                # The process has just ended, and the loop does not know yet.
                self._process = None
            else:
                return
        raise Overloaded("the journal's file server has ended; ask again")

    async def close(self) -> None:
        """Stop the file server; it has a second to finish current responses."""
        self._hang_up()
        if self._process is not None and self._process.returncode is None:
            try:
                async with asyncio.timeout(1.0):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()

    async def _library(self) -> socket.socket:
        """Return the socket of the file server, which is started if it does not run."""
        async with self._starting:
            is_running = self._process is not None and self._process.returncode is None
            if self._near is None or not is_running:
                self._near = await self._started()
        return self._near

    async def _started(self) -> socket.socket:
        self._hang_up()
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        near.setblocking(False)
        with far:
            self._process = await asyncio.create_subprocess_exec(
                *(
                    sys.executable,
                    "-P",
                    "-m",
                    "weft.gateway.journal.file_server",
                    str(far.fileno()),
                ),
                *self._arguments,
                pass_fds=(far.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        asyncio.get_running_loop().add_reader(near.fileno(), self._hear, near)
        return near

    def _hear(self, near: socket.socket) -> None:
        """Count a refusal reported by the file server."""
        try:
            data = near.recv(_NEWS_MAX_BYTES)
        except OSError:
            data = b""
        if not data:
            # It has ended: the next request starts it again.
            asyncio.get_running_loop().remove_reader(near.fileno())
            return
        news = msgspec.json.decode(data, type=FileRequestRefused)
        error = TooMany(news.text) if news.name == TooMany.__name__ else Overloaded(news.text)
        if self.on_refused is not None:
            self.on_refused(error, news.peer)

    def _hang_up(self) -> None:
        if self._near is not None:
            asyncio.get_running_loop().remove_reader(self._near.fileno())
            self._near.close()
            self._near = None
